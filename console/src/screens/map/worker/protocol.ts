import type { QueryableThread } from '../../../parts/thread.js';
import type { ColumnChange, MapChange, ViewerMark } from '../graph/difference.js';
import type { Connection, MapObject, MapObjectKind } from '../graph/model.js';
import type { Picture, PictureScope } from '../graph/picture.js';
import type { MapSearchResult } from '../graph/search.js';

export type MapSide = 'first' | 'second';

export type MapCounts = Readonly<Record<MapObjectKind, number>>;

export interface LoadedMap {
  readonly version: string;
  readonly counts: MapCounts;
}

/** Picture with the positions of its nodes. */
export interface DrawnPicture extends Picture {
  /** Centre of each node, by node id. */
  readonly places: Readonly<Record<string, readonly [x: number, y: number]>>;
  /** Nodes that each of the two callers sees; all nodes if there is only one caller. */
  readonly seen: Readonly<Record<MapSide, readonly string[]>>;
}

/** A connection (an edge of the graph) of an object, with the object at its other end. */
export interface Neighbour {
  readonly connection: Connection;
  readonly id: string;
  readonly name: string;
  readonly kind: MapObjectKind;
}

export interface Details {
  readonly object: MapObject;
  readonly mark: ViewerMark;
  /** Columns that the two callers see differently. */
  readonly columns: readonly ColumnChange[];
  readonly neighbours: readonly Neighbour[];
}

export interface MapChanges {
  readonly total: number;
  readonly first: readonly MapChange[];
}

/** Requests to the worker thread, by name. */
export type MapQuestions = {
  /** Loads a caller's schema; `body` is the response as received, not yet parsed. */
  readonly load: {
    readonly ask: { readonly side: MapSide; readonly body: ArrayBuffer };
    readonly answer: LoadedMap;
  };
  /** Discards the second caller's map. */
  readonly forget: { readonly ask: null; readonly answer: null };
  readonly draw: {
    readonly ask: {
      readonly scope: PictureScope;
      readonly kinds: readonly MapObjectKind[];
      /** Width of the frame divided by its height. */
      readonly ratio: number;
    };
    readonly answer: DrawnPicture;
  };
  readonly search: {
    readonly ask: { readonly term: string; readonly most: number };
    readonly answer: MapSearchResult;
  };
  /** Details of an object; null if neither caller sees it. */
  readonly details: { readonly ask: { readonly id: string }; readonly answer: Details | null };
  readonly changes: { readonly ask: { readonly most: number }; readonly answer: MapChanges };
};

export type MapThread = QueryableThread<MapQuestions>;
