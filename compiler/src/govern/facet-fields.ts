import { type Access, rowAccess } from '../access/access.js';
import { columnsFor } from '../bind/index.js';
import { type Catalog, columnOf, type FacetStore } from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import type { ColumnRef, SourceId } from '../plan/plan.js';
import { isOfPassage, type Retrieval, type RuntimeRelation } from '../plan/runtime.js';
import { servedAccess, servedVersion } from './facet-version.js';
import { columnRule, type MaskExtent } from './mask.js';

/**
 * Share of a caller's passages that show a mask instead of the field's value. `searched`: those in which the served
 * version redacted something, which cannot be known from the plan.
 */
export type FieldMask = MaskExtent | 'searched';

/**
 * Returns the mask of field `name`, the entity key or metadata, in the passages of `facet`: policy masks, and values
 * that the caller's version does not contain. A caller without a grant sees no passages, so nothing is masked.
 */
export function fieldMask(facet: FacetStore, name: string, catalog: Catalog, access: Access): FieldMask {
  const relation = catalog.relations.get(facet.name);
  const column = relation === undefined ? null : columnOf(relation, name);
  if (relation === undefined || column === null)
    throw new InternalError(`facet ${facet.name} has no field ${name}`);
  const allowed = rowAccess(facet.name, access);
  if (allowed === undefined) return 'none';
  if (columnsFor(relation, allowed).get(name)?.denied !== false) return 'all';
  const version = servedVersion(facet, catalog, access);
  const served = version === null ? allowed : servedAccess(allowed, version);
  const { masked } = columnRule(relation, name, served);
  if (masked !== 'none' || name === facet.entityKey || version === null) return masked;
  return version.searched && column.type !== 'bool' ? 'searched' : 'none';
}

/** A field of the passages of one RETRIEVE. */
export interface PassageField {
  readonly source: SourceId;
  readonly name: string;
  readonly mask: FieldMask;
}

/** The fields that a statement's RETRIEVE offers, as this caller sees them. */
export class PassageFields {
  readonly #retrievals: ReadonlyMap<SourceId, Retrieval>;
  readonly #catalog: Catalog;
  readonly #access: Access;

  constructor(relations: readonly RuntimeRelation[], catalog: Catalog, access: Access) {
    this.#retrievals = new Map(relations.flatMap((r) => (r.kind === 'retrieval' ? [[r.source, r]] : [])));
    this.#catalog = catalog;
    this.#access = access;
  }

  /** Returns the field that `ref` refers to; null for anything else, including the columns of every passage. */
  of({ source, name }: ColumnRef): PassageField | null {
    const retrieval = this.#retrievals.get(source);
    if (retrieval === undefined || isOfPassage(name, retrieval.asked)) return null;
    const { facet } = retrieval;
    const relation = this.#catalog.relations.get(facet.name);
    if (relation === undefined || columnOf(relation, name) === null) return null;
    return { source, name, mask: fieldMask(facet, name, this.#catalog, this.#access) };
  }

  /** True if the statement reads no passages. */
  get none(): boolean {
    return this.#retrievals.size === 0;
  }

  /** True if `ref` is the key of the entity that a passage belongs to. */
  isKey(ref: ColumnRef): boolean {
    return this.of(ref) !== null && this.#retrievals.get(ref.source)?.facet.entityKey === ref.name;
  }
}
