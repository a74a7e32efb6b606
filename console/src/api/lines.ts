/** Takes a text that comes in pieces apart into its lines. */
export class Lines {
  #rest = '';

  /** The lines that are whole with `piece`. */
  add(piece: string): readonly string[] {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }

  /** What came after the last line. */
  get rest(): string {
    return this.#rest;
  }
}
