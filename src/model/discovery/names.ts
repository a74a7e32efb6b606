import type { Manifest } from '../manifest/index.js';

const LONGEST = 63;

/** A name of the model made of an upstream one: what no name may hold becomes an underscore. */
export function nameFrom(upstream: string): string {
  const plain = upstream.replace(/[^A-Za-z0-9_]/g, '_').replace(/^_{2,}/, '_');
  return (/^[A-Za-z_]/.test(plain) ? plain : `t_${plain}`).slice(0, LONGEST);
}

/** Hands out names of which no two differ in case only. */
export class Names {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string>) {
    this.#taken = new Set([...taken].map((name) => name.toLowerCase()));
  }

  /** Names that are still free in `manifest`. */
  static of({ catalog }: Manifest): Names {
    return new Names([...catalog.relations.keys(), ...catalog.metrics.keys()]);
  }

  /** `upstream` as a name, else with what stands in front of it, else numbered. */
  free(upstream: string, before: string): string {
    const name = nameFrom(upstream);
    if (this.#take(name)) return name;
    const longer = nameFrom(`${before}_${upstream}`);
    if (this.#take(longer)) return longer;
    for (let n = 2; ; n++) {
      const end = `_${n}`;
      const numbered = `${longer.slice(0, LONGEST - end.length)}${end}`;
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
