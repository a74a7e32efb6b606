import type { QueryableThread } from '../../../parts/thread/asked-thread.js';
import type { ColumnChange, MapChange, ViewerMark } from '../graph/difference.js';
import type { Thing, ThingKind, Tie } from '../graph/model.js';
import type { Picture, PictureScope } from '../graph/picture.js';
import type { MapSearchResult } from '../graph/search.js';

/** Which of the two callers something is of. */
export type MapSide = 'first' | 'second';

/** What there is, by kind. */
export type MapCounts = Readonly<Record<ThingKind, number>>;

export interface LoadedMap {
  readonly version: string;
  readonly counts: MapCounts;
}

/** A picture, and where its nodes stand. */
export interface DrawnPicture extends Picture {
  /** By the node's id: the middle of it. */
  readonly places: Readonly<Record<string, readonly [x: number, y: number]>>;
  /** The nodes that each of the two sees; of one caller alone, all. */
  readonly seen: Readonly<Record<MapSide, readonly string[]>>;
}

/** The other end of a tie, for a list. */
export interface Neighbour {
  readonly tie: Tie;
  readonly id: string;
  readonly name: string;
  readonly kind: ThingKind;
}

/** All that the panel shows of a thing. */
export interface Details {
  readonly thing: Thing;
  readonly mark: ViewerMark;
  /** How the two see its columns, where they see them differently. */
  readonly columns: readonly ColumnChange[];
  readonly neighbours: readonly Neighbour[];
}

export interface MapChanges {
  readonly total: number;
  readonly first: readonly MapChange[];
}

/** What the thread of the map is asked, by name. */
export type MapQuestions = {
  /** Takes a governed schema as it was sent. */
  readonly load: {
    readonly ask: { readonly side: MapSide; readonly body: ArrayBuffer };
    readonly answer: LoadedMap;
  };
  /** Forgets the second caller. */
  readonly forget: { readonly ask: null; readonly answer: null };
  readonly draw: {
    readonly ask: {
      readonly scope: PictureScope;
      readonly kinds: readonly ThingKind[] /** Of the frame's width to its height. */;
      readonly ratio: number;
    };
    readonly answer: DrawnPicture;
  };
  readonly search: {
    readonly ask: { readonly term: string; readonly most: number };
    readonly answer: MapSearchResult;
  };
  /** Null for what neither sees. */
  readonly details: { readonly ask: { readonly id: string }; readonly answer: Details | null };
  readonly changes: { readonly ask: { readonly most: number }; readonly answer: MapChanges };
};

export type MapThread = QueryableThread<MapQuestions>;
