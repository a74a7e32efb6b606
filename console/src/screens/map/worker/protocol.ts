import type { AskedThread } from '../../../parts/thread/asked-thread.js';
import type { Change, ColumnChange, Mark } from '../graph/difference.js';
import type { Kind, Thing, Tie } from '../graph/model.js';
import type { Picture, Scope } from '../graph/picture.js';
import type { Search } from '../graph/search.js';

/** Which of the two callers something is of. */
export type Side = 'first' | 'second';

/** What there is, by kind. */
export type Counts = Readonly<Record<Kind, number>>;

export interface LoadedMap {
  readonly version: string;
  readonly counts: Counts;
}

/** A picture, and where its nodes stand. */
export interface DrawnPicture extends Picture {
  /** By the node's id: the middle of it. */
  readonly places: Readonly<Record<string, readonly [x: number, y: number]>>;
  /** The nodes that each of the two sees; of one caller alone, all. */
  readonly seen: Readonly<Record<Side, readonly string[]>>;
}

/** The other end of a tie, for a list. */
export interface Neighbour {
  readonly tie: Tie;
  readonly id: string;
  readonly name: string;
  readonly kind: Kind;
}

/** All that the panel shows of a thing. */
export interface Details {
  readonly thing: Thing;
  readonly mark: Mark;
  /** How the two see its columns, where they see them differently. */
  readonly columns: readonly ColumnChange[];
  readonly neighbours: readonly Neighbour[];
}

export interface Changes {
  readonly total: number;
  readonly first: readonly Change[];
}

/** What the thread of the map is asked, by name. */
export type MapQuestions = {
  /** Takes a governed schema as it was sent. */
  readonly load: {
    readonly ask: { readonly side: Side; readonly body: ArrayBuffer };
    readonly answer: LoadedMap;
  };
  /** Forgets the second caller. */
  readonly forget: { readonly ask: null; readonly answer: null };
  readonly draw: {
    readonly ask: {
      readonly scope: Scope;
      readonly kinds: readonly Kind[] /** Of the frame's width to its height. */;
      readonly ratio: number;
    };
    readonly answer: DrawnPicture;
  };
  readonly search: {
    readonly ask: { readonly term: string; readonly most: number };
    readonly answer: Search;
  };
  /** Null for what neither sees. */
  readonly details: { readonly ask: { readonly id: string }; readonly answer: Details | null };
  readonly changes: { readonly ask: { readonly most: number }; readonly answer: Changes };
};

export type MapThread = AskedThread<MapQuestions>;
