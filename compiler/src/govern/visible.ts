import { type Access, type RelationAccess, rowAccess } from '../access.js';
import { columnsFor } from '../bind/index.js';
import { type Catalog, type Column, columnOf, type Relation } from '../catalog.js';
import { InternalError } from '../errors.js';
import { type FieldMask, fieldMask } from './facet-fields.js';
import { columnRule, type Masked } from './mask.js';

/** What a caller may be told of one column that it may use. */
export interface VisibleColumn {
  readonly column: Column;
  /** In which of the rows that the caller sees the value is masked. */
  readonly masked: Masked;
  /** Whether rows show it; otherwise only aggregates over large enough groups may use it. */
  readonly rows: boolean;
  /** Whether the caller can join rows on it: a sealed key that they show, not masked beyond use. */
  readonly joinable: boolean;
}

/**
 * The columns of `relation` of `catalog` that this caller may use, in declared order; none where the relation is not its.
 */
export function visibleColumns(
  relation: Relation,
  catalog: Catalog,
  access: Access,
): readonly VisibleColumn[] {
  const rights = access.relations.get(relation.name);
  if (rights === undefined || rights.grants.length === 0) return [];
  const shown = rowAccess(relation.name, access);
  const inRows = shown === undefined ? null : columnsFor(relation, shown);
  const facet = catalog.facets.get(relation.name);
  return [...columnsFor(relation, rights).values()]
    .filter((c) => !c.denied)
    .map(({ name, sealed }) => {
      const rows = inRows?.get(name)?.denied === false && shown !== undefined;
      if (facet !== undefined && rows)
        return field(relation, name, sealed, fieldMask(facet, name, catalog, access));
      return visible(relation, name, sealed, rows, rows ? shown : rights);
    });
}

/** A field of passages, which the version that is served may mask where policy does not. */
function field(relation: Relation, name: string, sealed: boolean, mask: FieldMask): VisibleColumn {
  const masked = mask === 'searched' ? 'some' : mask;
  const isClear = mask === 'none' || mask === 'searched';
  return Object.freeze({
    column: declaredColumn(relation, name),
    masked,
    rows: true,
    joinable: sealed && isClear,
  });
}

function declaredColumn(relation: Relation, name: string): Column {
  const column = columnOf(relation, name);
  if (column === null) throw new InternalError(`relation ${relation.name} has no column ${name}`);
  return column;
}

function visible(
  relation: Relation,
  name: string,
  sealed: boolean,
  rows: boolean,
  rights: RelationAccess,
): VisibleColumn {
  const column = declaredColumn(relation, name);
  const { masked, mask } = columnRule(relation, name, rights);
  return Object.freeze({
    column,
    masked,
    rows,
    joinable: rows && sealed && (masked !== 'all' || mask === 'hash'),
  });
}
