import { type Position, queryError } from '../errors/errors.js';
import type { Expr, Form, FromItem, Query, SourceId } from '../plan/plan.js';
import { allQueries, exprsOf, leavesOf, nestingIn, visitExpr } from '../plan/walk.js';
import type { BindContext } from './context.js';

type OslForm = Exclude<Form, 'sql' | 'metrics'>;

/**
 * Returns the form of a statement, one of five. Parts of different forms may be combined only by equality of sealed
 * keys, not by set operations or uncorrelated subqueries.
 *
 * Source: contract, OSL-SQL rules 3; decision 113.
 *
 * @throws QueryError E0511 if the statement mixes two forms
 */
export function formOf(root: Query, ctx: BindContext): OslForm {
  return new FormFinder(ctx).whole(root) ?? 'structured';
}

class FormFinder {
  readonly #ctx: BindContext;
  /** Forms of the common tables; null for a table that reads no entity. */
  readonly #tables = new Map<number, OslForm | null>();
  readonly #read = new Set<number>();

  constructor(ctx: BindContext) {
    this.#ctx = ctx;
  }

  /** Finds the form of the whole statement, including unused common tables. */
  whole(root: Query): OslForm | null {
    let form = this.#of(root);
    for (const [id, other] of this.#tables) {
      if (!this.#read.has(id)) form = this.#apart(form, other, () => null);
    }
    return form;
  }

  #of(query: Query): OslForm | null {
    if (query.kind !== 'values') for (const t of query.with) this.#tables.set(t.id, this.#of(t.query));
    if (query.kind === 'set_operation') {
      const left = this.#of(query.left);
      return this.#within(
        query,
        this.#apart(left, this.#of(query.right), () => this.#placeOf(query.right)),
      );
    }
    const items = query.kind === 'select' ? leavesOf(query.from) : [];
    return this.#within(query, items.map((item) => this.#ofItem(item)).reduce(joined, null));
  }

  #ofItem(item: FromItem): OslForm | null {
    switch (item.kind) {
      case 'entity':
      case 'governed':
        return 'structured';
      case 'derived':
        return this.#of(item.query);
      case 'cte':
        this.#read.add(item.table);
        return this.#tables.get(item.table) ?? null;
      case 'runtime':
        return this.#ofRuntime(item.id);
      default:
        return null;
    }
  }

  #ofRuntime(source: SourceId): OslForm {
    switch (this.#ctx.drafts.find((d) => d.source === source)?.kind) {
      case 'retrieval':
        return 'retrieve';
      case 'traversal':
        return 'traverse';
      case 'hydration':
        return 'joint';
      default:
        return 'structured';
    }
  }

  #within(query: Query, form: OslForm | null): OslForm | null {
    let found = form;
    for (const nesting of nestingIn(query)) {
      const inner = this.#of(nesting.query);
      const meets = found !== null && inner !== null && found !== inner;
      const joins = !meets || nesting.kind === 'in_query' || isCorrelated(nesting.query);
      found = joins ? joined(found, inner) : this.#apart(found, inner, () => this.#ctx.positionOf(nesting));
    }
    return found;
  }

  #apart(a: OslForm | null, b: OslForm | null, at: () => Position | null): OslForm | null {
    if (a === null || b === null || a === b) return a ?? b;
    const construct = `a statement of two forms, ${NAMES[a]} and ${NAMES[b]},`;
    const hint = 'join passages with entities on sealed keys, or ask for each by itself';
    throw queryError('unsupported', { construct, hint }, at());
  }

  #placeOf(query: Query): Position | null {
    const items = allQueries(query).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
    return items.map(({ id }) => this.#ctx.positionOfSource(id)).find((p) => p !== null) ?? null;
  }
}

const NAMES: Readonly<Record<OslForm, string>> = {
  structured: 'structured',
  retrieve: 'RETRIEVE',
  traverse: 'TRAVERSE',
  joint: 'Joint',
  cross_modal: 'a cross-modal join',
};

function joined(a: OslForm | null, b: OslForm | null): OslForm | null {
  if (a === null || b === null || a === b) return a ?? b;
  const walked = [a, b].find((form) => form === 'traverse' || form === 'joint');
  return walked ?? 'cross_modal';
}

function isCorrelated(query: Query): boolean {
  const levels = allQueries(query);
  const own = new Set(levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])));
  const isOuter = (e: Expr): boolean => e.kind === 'column' && !own.has(e.source);
  let found = false;
  for (const value of levels.flatMap(exprsOf))
    visitExpr(value, (e) => {
      if (isOuter(e)) found = true;
    });
  return found;
}
