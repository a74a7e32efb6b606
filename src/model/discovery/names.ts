import { type Manifest, modelNameFrom, withEnd } from '../manifest/index.js';

/** Hands out names of which no two differ in case only. */
export class NameAllocator {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string>) {
    this.#taken = new Set([...taken].map((name) => name.toLowerCase()));
  }

  /** Names that are still free in `manifest`. */
  static of({ catalog }: Manifest): NameAllocator {
    return new NameAllocator([...catalog.relations.keys(), ...catalog.metrics.keys()]);
  }

  /** `upstream` as a name, else with what stands in front of it, else numbered. */
  free(upstream: string, before: string): string {
    const name = modelNameFrom(upstream);
    if (this.#take(name)) return name;
    const longer = modelNameFrom(`${before}_${upstream}`);
    if (this.#take(longer)) return longer;
    for (let n = 2; ; n++) {
      const numbered = withEnd(longer, `_${n}`);
      if (this.#take(numbered)) return numbered;
    }
  }

  #take(name: string): boolean {
    const key = name.toLowerCase();
    if (this.#taken.has(key)) return false;
    this.#taken.add(key);
    return true;
  }
}
