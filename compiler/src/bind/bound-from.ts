import type { Node } from '@pgsql/types';
import type { FromItem } from '../plan/plan.js';
import type { ScopeItem, UsingColumn } from './scope.js';

/** A FROM clause: its tree, and its items as names see them, left to right. */
export interface BoundItem {
  readonly item: FromItem;
  readonly items: readonly ScopeItem[];
  /** Whether an entity or bridge stands in it by its name, and not only what queries made of some. */
  readonly named: boolean;
  /** Whether passages, a walk or evidence stand in it, at any depth. */
  readonly content: boolean;
  /** Columns that USING joined. */
  readonly using?: readonly UsingColumn[];
}

/** A whole FROM clause. */
export interface BoundFrom extends BoundItem {
  readonly using: readonly UsingColumn[];
  /** The conjuncts of WHERE that join what commas separate; they filter no more. */
  readonly keys: ReadonlySet<Node>;
}
