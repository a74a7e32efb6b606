import type { Hop } from 'osl-compiler';

/** By what a key is known again: the text of its one column, or a JSON array of those of its columns. */
export type KeyIdentity = string;

/** Keys, each with the texts of its columns. */
export type Keys = ReadonlyMap<KeyIdentity, readonly string[]>;

export function identityOf(parts: readonly string[]): KeyIdentity {
  const [only, ...more] = parts;
  return only !== undefined && more.length === 0 ? only : JSON.stringify(parts);
}

/** What one hop reached, and of each key a source that leads to it. */
interface HopResult {
  readonly targets: Keys;
  readonly parents: ReadonlyMap<KeyIdentity, KeyIdentity>;
}

/** A place on the way to a row: the anchor, and then where each edge leads. */
interface TrailStep {
  readonly edge?: string;
  readonly entity: string;
  /** The text of the key, or those of its columns. */
  readonly key: string | readonly string[];
}

/** How the rows of a walk were reached. Its places are what the hops gave: keys that the caller may see. */
export class Trail {
  readonly #anchor: string;
  readonly #anchors: Keys;
  readonly #hops: { readonly hop: Hop; readonly reached: HopResult }[] = [];

  constructor(anchor: string, anchors: Keys) {
    this.#anchor = anchor;
    this.#anchors = anchors;
  }

  add(hop: Hop | undefined, reached: HopResult): void {
    if (hop !== undefined) this.#hops.push({ hop, reached });
  }

  /** The way to `key`, which was reached at `depth`: of several shortest ones the first by its keys, from the end. */
  to(key: KeyIdentity, depth: number): readonly TrailStep[] {
    const places: TrailStep[] = [];
    let at = key;
    for (let i = depth - 1; i >= 0; i--) {
      const level = this.#hops[i];
      if (level === undefined) break;
      const { hop, reached } = level;
      places.push({ edge: hop.edge, entity: hop.to, key: shown(reached.targets.get(at), at) });
      at = reached.parents.get(at) ?? at;
    }
    places.push({ entity: this.#anchor, key: shown(this.#anchors.get(at), at) });
    return places.reverse();
  }
}

function shown(parts: readonly string[] | undefined, identity: KeyIdentity): string | readonly string[] {
  return parts === undefined || parts.length === 1 ? (parts?.[0] ?? identity) : parts;
}
