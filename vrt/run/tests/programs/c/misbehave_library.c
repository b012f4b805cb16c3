/* What `misbehave.c` opens. */
static int counter;
int count(void) { return ++counter; }
