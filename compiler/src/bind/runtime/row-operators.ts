import type { OperatorName } from '../../catalog/operators.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { columnRef } from '../../plan/nodes.js';
import type { ColumnRef, Expr, SourceId } from '../../plan/plan.js';
import { ORDINAL } from '../../plan/runtime.js';
import type { TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { mostOperated, type OperatedDraft } from './runtime-draft.js';

export interface OperatedText {
  readonly operator: OperatorName;
  readonly type: TypeName;
  readonly arguments: ReadonlyMap<string, Expr>;
  readonly text: Expr;
}

export interface OperatedLevel {
  readonly draft: OperatedDraft;
  readonly slot: number;
  readonly location: Location;
  /** The operators without duplicates, in the order of their result columns `c1`, `c2`, …. */
  readonly uses: readonly OperatedText[];
}

export class RowOperators {
  readonly #uses = new Map<string, OperatedText>();
  #draft: { readonly draft: OperatedDraft; readonly slot: number } | null = null;
  #location: Location;

  get level(): OperatedLevel | null {
    return this.#draft === null
      ? null
      : { ...this.#draft, location: this.#location, uses: [...this.#uses.values()] };
  }

  /** True if `source` is the FROM item with the results of these operators. */
  isResult(source: SourceId): boolean {
    return this.#draft?.draft.source === source;
  }

  /** Adds an operator and returns its result column. */
  result(use: OperatedText, location: Location, ctx: BindContext): ColumnRef {
    const { draft } = this.#opened(location, ctx);
    const key = JSON.stringify([use.operator, [...use.arguments], fingerprint(use.text)]);
    this.#uses.set(key, this.#uses.get(key) ?? Object.freeze(use));
    const column = `c${[...this.#uses.keys()].indexOf(key) + 1}`;
    ctx.use(draft.source, column);
    return columnRef(draft.source, column, use.type);
  }

  #opened(location: Location, ctx: BindContext) {
    if (this.#draft !== null) return this.#draft;
    this.#location = location;
    const draft: OperatedDraft = {
      kind: 'operated',
      source: ctx.nextSource(),
      most: mostOperated(ctx.catalog),
      offered: new Map([[ORDINAL, 'int4']]),
      rows: null,
      operators: [],
      key: null,
    };
    this.#draft = { draft, slot: ctx.addRuntime(draft, location) };
    return this.#draft;
  }
}
