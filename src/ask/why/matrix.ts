import type { Access, Catalog, Relation, RelationGrant } from 'osl-compiler';
import {
  type Circumstances,
  effectiveAccess,
  hypotheticalClaims,
  NO_CIRCUMSTANCES,
  type PolicySnapshot,
} from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import { objectName, readsOf, type Visibility, visibilities } from '../../model/graph/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { RequestCall } from '../request/call.js';
import { type ServedVersions, versionsOf } from '../request/caller.js';
import type { RequestParts } from '../request/parts.js';
import { adminsOnly } from '../request/refusals.js';
import { respond } from '../request/respond.js';

export interface MatrixQuestion {
  readonly subject: string;
  /** Selects the columns whose full name contains this text, ignoring case. */
  readonly object: string;
  /** Selects subjects with one of these visibilities for at least one column on the page; null for all subjects. */
  readonly sees: readonly Visibility[] | null;
  /** Selects the subjects whose name sorts after this one; null to start with the first subject. */
  readonly after: string | null;
  readonly subjects: number;
  readonly from: number;
  readonly rows: number;
  /** An additional chain, root first, which is listed before the subjects; null for none. */
  readonly chain: readonly string[] | null;
}

interface MatrixRow {
  readonly object: string;
  readonly column: string;
  readonly label: string | null;
  readonly sees: readonly Visibility[];
  /** For each subject, true if row filters limit the rows in which the subject sees the column. */
  readonly some_rows: readonly boolean[];
}

/** Visibility of columns for each subject, acting alone with all its possible roles. */
export interface Matrix {
  /** Chains, usually of the subject alone. */
  readonly subjects: readonly (readonly string[])[];
  readonly next_subject: string | null;
  readonly subject_count: number;
  readonly rows: readonly MatrixRow[];
  readonly row_count: number;
  readonly versions: ServedVersions;
}

export const MOST_SUBJECTS = 50;
export const MOST_ROWS = 200;
/** Maximum number of subjects evaluated for a page. If it is reached, the page ends early. */
const MOST_JUDGED = 1_000;
/** Number of names processed between two yields to the event loop. */
const STRIDE = 500;

/**
 * Returns a page of the matrix of subjects and columns; only for callers who may know the policy. Like
 * `explainAccess`, evaluates each subject at the present time and without an address.
 *
 * @throws QueryError E2101 without an admin role, and the errors of `respond`
 */
export function matrix(parts: RequestParts, call: RequestCall, question: MatrixQuestion): Promise<Matrix> {
  return respond<null, Matrix>(parts, call, {
    action: 'admin_matrix',
    bucket: 'authoring',
    requireAllowed: adminsOnly('operatorsOnly'),
    decide: () => null,
    answer: async (_, caller) => {
      const { manifest, snapshot } = caller;
      return { ...(await inTurns(partOf(manifest, snapshot, question))), versions: versionsOf(caller) };
    },
  });
}

function* partOf(
  manifest: Manifest,
  snapshot: PolicySnapshot,
  question: MatrixQuestion,
): Generator<void, Omit<Matrix, 'versions'>> {
  const { found, row_count } = yield* rowsFor(manifest, question);
  const { names, subject_count } = yield* subjectsFor(snapshot, question);
  const judge = new VisibilityEvaluator(manifest, snapshot, found);
  const subjects: (readonly string[])[] = [];
  const columns: (readonly CellSight[])[] = [];
  if (question.chain !== null) {
    subjects.push(question.chain);
    columns.push(yield* judge.sights(question.chain));
  }
  let judged = 0;
  let next: string | null = null;
  for (const [i, name] of names.entries()) {
    if (subjects.length >= question.subjects || judged >= MOST_JUDGED) {
      next = names[i - 1] ?? question.after;
      break;
    }
    judged += 1;
    const visibilitiesFor = yield* judge.sights([name]);
    if (question.sees !== null && !visibilitiesFor.some(({ sees }) => question.sees?.includes(sees)))
      continue;
    subjects.push([name]);
    columns.push(visibilitiesFor);
  }
  const rows = found.map(({ relation, column, label }, i) => ({
    object: objectName(relation),
    column,
    label,
    sees: columns.map((sights) => sights[i]?.sees ?? 'nothing'),
    some_rows: columns.map((sights) => sights[i]?.someRows ?? false),
  }));
  return { subjects, next_subject: next, subject_count, rows, row_count };
}

interface CellSight {
  readonly sees: Visibility;
  readonly someRows: boolean;
}

interface SelectedRow {
  readonly relation: Relation;
  readonly column: string;
  readonly label: string | null;
}

function* rowsFor(
  { catalog }: Manifest,
  { object, from, rows }: MatrixQuestion,
): Generator<void, { readonly found: readonly SelectedRow[]; readonly row_count: number }> {
  const like = object.toLowerCase();
  const found: SelectedRow[] = [];
  let row_count = 0;
  let looked = 0;
  for (const name of [...catalog.relations.keys()].sort()) {
    const relation = catalog.relations.get(name);
    if (relation === undefined) continue;
    const full = objectName(relation).toLowerCase();
    for (const { name: column, sensitivity } of [...relation.columns, ...(relation.computed ?? [])]) {
      if (++looked % STRIDE === 0) yield;
      if (!`${full}.${column.toLowerCase()}`.includes(like)) continue;
      if (row_count >= from && found.length < rows)
        found.push({ relation, column, label: sensitivity ?? null });
      row_count += 1;
    }
  }
  return { found, row_count };
}

function* subjectsFor(
  { subjects }: PolicySnapshot,
  { subject, after }: MatrixQuestion,
): Generator<void, { readonly names: readonly string[]; readonly subject_count: number }> {
  const like = subject.toLowerCase();
  const names: string[] = [];
  let looked = 0;
  for (const name of subjects.keys()) {
    if (++looked % STRIDE === 0) yield;
    if (name.toLowerCase().includes(like)) names.push(name);
  }
  yield;
  names.sort();
  return {
    names: after === null ? names : names.filter((name) => name > after),
    subject_count: names.length,
  };
}

/**
 * True if every grant that shows the column (or an input of a computed column) has a row filter. For a column of
 * passages, also true if every grant on the facet's entity has a row filter.
 */
function isFiltered({ relation, column }: SelectedRow, { facets }: Catalog, access: Access): boolean {
  const entity = facets.get(relation.name)?.entity;
  return (
    readsOf(relation, column).some((read) =>
      areFiltered(read.relation, (grant) => grant.columns.has(read.column), access),
    ) ||
    (entity !== undefined && areFiltered(entity, () => true, access))
  );
}

/** True if at least one grant that `covers` accepts shows single rows, and every such grant has a row filter. */
function areFiltered(name: string, covers: (grant: RelationGrant) => boolean, access: Access): boolean {
  const grants = access.relations.get(name)?.grants ?? [];
  const showing = grants.filter((grant) => grant.groups === undefined && covers(grant));
  return showing.length > 0 && showing.every(({ filter }) => filter !== null);
}

class VisibilityEvaluator {
  readonly #manifest: Manifest;
  readonly #snapshot: PolicySnapshot;
  readonly #rows: readonly SelectedRow[];
  readonly #circumstances: Circumstances = Object.freeze({ ...NO_CIRCUMSTANCES, now: Date.now() });

  constructor(manifest: Manifest, snapshot: PolicySnapshot, rows: readonly SelectedRow[]) {
    this.#manifest = manifest;
    this.#snapshot = snapshot;
    this.#rows = rows;
  }

  *sights(chain: readonly string[]): Generator<void, readonly CellSight[]> {
    const { catalog } = this.#manifest;
    yield;
    const identity = hypotheticalClaims({ chain, roles: null }, this.#snapshot);
    const access = effectiveAccess(identity, this.#snapshot, catalog, this.#circumstances);
    const sights: CellSight[] = [];
    let last: Relation | null = null;
    let seen: ReadonlyMap<string, Visibility> = new Map();
    for (const row of this.#rows) {
      const { relation, column } = row;
      if (relation !== last) {
        yield;
        seen = new Map(visibilities(relation, catalog, access).map(({ name, sees }) => [name, sees]));
        last = relation;
      }
      const sees = seen.get(column) ?? 'nothing';
      sights.push({ sees, someRows: sees !== 'nothing' && isFiltered(row, catalog, access) });
    }
    return sights;
  }
}
