//! The C compiler, for programs that run under `vrtrun`.

fn main() -> std::process::ExitCode {
    vrt_abi::wrapper::main(vrt_abi::wrapper::Language::C)
}
