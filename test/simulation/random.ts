/** Random numbers that a seed determines (sfc32). */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = (seed / 2 ** 32) | 0;
    this.#c = 0x9e3779b9 | 0;
    for (let i = 0; i < 12; i++) this.#bits();
  }

  #bits(): number {
    const t = (((this.#a + this.#b) | 0) + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + t) | 0;
    return t >>> 0;
  }

  /** A number of [0, 1). */
  next(): number {
    return this.#bits() / 2 ** 32;
  }

  /** An integer of [0, n). */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  /** An integer of [least, most]. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }

  /** Fills an array of bytes. */
  fill(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.#bits() & 0xff;
  }
}
