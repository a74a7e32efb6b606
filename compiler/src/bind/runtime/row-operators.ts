import type { OperatorName } from '../../catalog/operators.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { columnRef } from '../../plan/nodes.js';
import type { ColumnRef, Expr, SourceId } from '../../plan/plan.js';
import { ORDINAL } from '../../plan/runtime.js';
import type { TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { mostOperated, type OperatedDraft } from './runtime-draft.js';

/** One operator over texts of the rows that a SELECT reads. */
export interface OperatedText {
  readonly operator: OperatorName;
  readonly type: TypeName;
  readonly arguments: ReadonlyMap<string, Expr>;
  /** The texts, as the rows have them. */
  readonly text: Expr;
}

/** The rows of a SELECT with the operators over them, while it is bound. */
export interface OperatedLevel {
  readonly draft: OperatedDraft;
  readonly slot: number;
  /** Position of the first operator. */
  readonly location: Location;
  /** Each once; the result of the first is column `c1`. */
  readonly uses: readonly OperatedText[];
}

/** Takes the operators over rows of one SELECT. */
export class RowOperators {
  readonly #uses = new Map<string, OperatedText>();
  #draft: { readonly draft: OperatedDraft; readonly slot: number } | null = null;
  #location: Location;

  /** Null where there are none. */
  get level(): OperatedLevel | null {
    return this.#draft === null
      ? null
      : { ...this.#draft, location: this.#location, uses: [...this.#uses.values()] };
  }

  /** True if columns of `source` are results of these operators. */
  isResult(source: SourceId): boolean {
    return this.#draft?.draft.source === source;
  }

  /** The column that will hold the results of `use`. */
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
    this.#draft = { draft, slot: ctx.runtime(draft, location) };
    return this.#draft;
  }
}
