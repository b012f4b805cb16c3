//! The display on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};
use vrt_launch::count;
use vrt_launch::monitor::{PeSeen, Snapshot};

use crate::order::{COLUMNS, Order, cells, headline, percent};

/// The most lines for PEs and for moves.
const PES: usize = 16;
const MOVES: usize = 5;
/// Width of a PE's bar.
const BAR: usize = 40;

/// What is shown, and how.
pub(crate) struct Screen {
    shot: Snapshot,
    order: Order,
    /// Number of ranks scrolled off above the first line.
    above: usize,
}

impl Screen {
    pub(crate) fn new(shot: Snapshot, order: Order) -> Screen {
        Screen { shot, order, above: 0 }
    }

    /// Shows a new snapshot.
    pub(crate) fn see(&mut self, shot: Snapshot) {
        self.shot = shot;
        self.scroll(0);
    }

    /// Sorts as a key selects; other keys change nothing.
    pub(crate) fn sort(&mut self, letter: char) {
        if let Some(order) = Order::of_key(letter) {
            (self.order, self.above) = (order, 0);
        }
    }

    /// Scrolls the ranks by this many lines.
    pub(crate) fn scroll(&mut self, by: isize) {
        let last = self.shot.ranks.len().saturating_sub(1);
        self.above = self.above.saturating_add_signed(by).min(last);
    }

    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let head: Vec<Line<'_>> = headline(&self.shot).into_iter().map(Line::from).collect();
        let (pes, moves) = (self.shot.pes.len().min(PES), self.shot.moves.len().min(MOVES));
        let parts = Layout::vertical([
            Constraint::Length(head.len() as u16),
            Constraint::Length(pes as u16 + 1),
            Constraint::Min(3),
            Constraint::Length(if moves > 0 { moves as u16 + 1 } else { 0 }),
            Constraint::Length(1),
        ])
        .split(frame.area());
        frame.render_widget(Paragraph::new(head), parts[0]);
        self.draw_pes(frame, parts[1]);
        self.draw_ranks(frame, parts[2]);
        self.draw_moves(frame, parts[3]);
        let keys = "q: end  r p l m s v w: sort by rank, PE, load, memory, messages, moves, wait  arrows: scroll";
        frame.render_widget(Line::from(keys).style(Style::new().fg(Color::DarkGray)), parts[4]);
    }

    fn draw_pes(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut lines: Vec<Line<'_>> = self.shot.pes.iter().take(PES).map(line_of).collect();
        if self.shot.pes.len() > PES {
            lines.push(Line::from(format!("and {} more PEs", self.shot.pes.len() - PES)));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_ranks(&self, frame: &mut Frame<'_>, area: Rect) {
        let ranks = self.order.of(&self.shot);
        let rows = ranks.iter().skip(self.above).map(|rank| {
            let style = match rank.state.as_str() {
                "waits" => Style::new(),
                _ => Style::new().fg(Color::Green),
            };
            Row::new(cells(rank).map(Cell::from)).style(style)
        });
        let widths = [6, 5, 6, 7, 9, 11, 9, 6].map(Constraint::Length);
        let widths = widths.into_iter().chain([Constraint::Fill(1)]);
        let heads = Row::new(COLUMNS).style(Style::new().add_modifier(Modifier::BOLD));
        let title = match self.shot.left_out {
            0 => format!("ranks, by {:?}", self.order).to_lowercase(),
            n => format!("ranks, by {:?}; {n} with lower loads are left out", self.order)
                .to_lowercase(),
        };
        let block = Block::bordered().title(title);
        frame.render_widget(Table::new(rows, widths).header(heads).block(block), area);
    }

    fn draw_moves(&self, frame: &mut Frame<'_>, area: Rect) {
        let lines: Vec<Line<'_>> = self
            .shot
            .moves
            .iter()
            .take(MOVES)
            .map(|it| {
                let times =
                    if it.times > 1 { format!(", {} moves", it.times) } else { String::new() };
                Line::from(format!(
                    "{:.1} s: rank {} from PE {} to PE {}{times}",
                    it.at, it.rank, it.from, it.to
                ))
            })
            .collect();
        frame.render_widget(Paragraph::new(lines), area);
    }
}

fn line_of(pe: &PeSeen) -> Line<'_> {
    let cells = |part: f64| (part * BAR as f64).round() as usize;
    let busy = cells(pe.busy).min(BAR);
    let rest = cells(pe.overhead.unwrap_or_default()).min(BAR - busy);
    let silent = match pe.silent {
        0.0..0.5 => String::new(),
        seconds => format!("  a rank has kept its thread for {seconds:.1} s"),
    };
    Line::from(vec![
        Span::raw(format!("PE {:<4} ", pe.pe)),
        Span::styled("#".repeat(busy), Style::new().fg(Color::Blue)),
        Span::styled("+".repeat(rest), Style::new().fg(Color::Yellow)),
        Span::styled(".".repeat(BAR - busy - rest), Style::new().fg(Color::DarkGray)),
        Span::raw(format!(
            " {:>6} in ranks, {:>6} idle; {}, {} ready{silent}",
            percent(pe.busy),
            percent(pe.idle),
            count(pe.ranks, "rank"),
            pe.ready
        )),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use vrt_launch::monitor::{MoveSeen, RankSeen};

    #[test]
    fn a_job_fits_on_a_small_terminal() {
        let rank = |rank, load| RankSeen {
            rank,
            load,
            state: "waits".to_owned(),
            wait: "in receive_into with rank 3, tag 7".to_owned(),
            ..RankSeen::default()
        };
        let shot = Snapshot {
            command: "program".to_owned(),
            pes: vec![PeSeen {
                busy: 0.5,
                idle: 0.25,
                overhead: Some(0.25),
                ranks: 3,
                ..PeSeen::default()
            }],
            ranks: vec![rank(0, 0.1), rank(1, 0.7), rank(2, 0.2)],
            moves: vec![MoveSeen { at: 1.0, rank: 2, from: 1, to: 0, times: 2 }],
            number_of_ranks: 3,
            ..Snapshot::default()
        };
        let mut screen = Screen::new(shot, Order::Rank);
        let mut terminal = Terminal::new(TestBackend::new(100, 14)).unwrap();
        let mut lines = |screen: &Screen| -> Vec<String> {
            terminal.draw(|frame| screen.draw(frame)).unwrap();
            let buffer = terminal.backend().buffer();
            let symbols: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
            symbols.chunks(100).map(|line| line.concat()).collect()
        };
        let shown = lines(&screen);
        assert!(shown[2].starts_with(&format!(
            "PE 0    {}{}{}",
            "#".repeat(20),
            "+".repeat(10),
            ".".repeat(10)
        )));
        assert!(
            shown[6].contains("10.0%") && shown[6].contains("in receive_into with"),
            "{shown:?}"
        );
        assert!(
            shown.iter().any(|line| line.starts_with("1.0 s: rank 2 from PE 1 to PE 0, 2 moves"))
        );
        screen.sort('l');
        assert!(lines(&screen)[6].contains("70.0%"));
        screen.scroll(2);
        assert!(lines(&screen)[6].contains("10.0%"));
        screen.scroll(-5);
        assert!(lines(&screen)[6].contains("70.0%"));
    }
}
