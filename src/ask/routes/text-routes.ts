import type { Literals, Route } from './route.js';
import { LiteralScan, type TextShape } from './text-shape.js';

interface TextRoute {
  readonly shape: TextShape;
  /** The types that the client declared for `$1 …`. */
  readonly oids: readonly number[];
  readonly route: Route;
}

/** A route, and what of a text's it is to be taken with. */
export interface FoundRoute {
  readonly route: Route;
  readonly literals: Literals;
}

/** Routes of one hash: shapes that have it in common, and the plans of one shape. */
const MOST_ALIKE = 8;
const MOST_ROUTES = 64;

/** The routes of one caller's texts under one version of everything, found by a look at the bytes. */
export class TextRoutes {
  readonly #byHash = new Map<number, TextRoute[]>();
  readonly #scan = new LiteralScan();
  #count = 0;

  /**
   * Calls `take` with the route of the text that is the UTF-8 of bytes [start, end), with these types declared for its
   * parameters, and the values of its literals; with the next one while it says false. False where none took it.
   */
  offer(
    bytes: Buffer,
    start: number,
    end: number,
    oids: readonly number[],
    take: (route: Route, values: readonly string[]) => boolean,
  ): boolean {
    const scan = this.#scan;
    if (!scan.run(bytes, start, end)) return false;
    const alike = this.#byHash.get(scan.hash);
    if (alike === undefined) return false;
    for (const { shape, oids: declared, route } of alike) {
      if (!sameNumbers(declared, oids)) continue;
      const values = shape.valuesIn(bytes, start, end, scan);
      if (values !== null && take(route, values)) return true;
    }
    return false;
  }

  /** The route of the text that is `bytes` in UTF-8, with these types declared, and the values of its literals. */
  find(bytes: Buffer, oids: readonly number[]): FoundRoute | null {
    let found: FoundRoute | null = null;
    this.offer(bytes, 0, bytes.length, oids, (route, literals) => {
      if (route.slotsWith(literals) === null) return false;
      found = { route, literals };
      return true;
    });
    return found;
  }

  /** Keeps `route` for texts of `shape`. */
  keep(shape: TextShape, oids: readonly number[], route: Route): void {
    if (this.#count >= MOST_ROUTES) {
      this.#byHash.clear();
      this.#count = 0;
    }
    const alike = this.#byHash.get(shape.hash) ?? [];
    // The oldest makes room: what is asked again comes back.
    const others = alike.length < MOST_ALIKE ? alike : alike.slice(1);
    this.#byHash.set(shape.hash, [...others, { shape, oids, route }]);
    this.#count += 1 + others.length - alike.length;
  }
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}
