import type { Node } from '@pgsql/types';
import { assemble, type ImportResult } from '../assemble.js';
import { type ColumnDraft, endText, ImportDraft, isKeyOf } from '../draft.js';
import { safeText } from '../names.js';
import type { ModelImportOptions } from '../options.js';
import { type SourceFile, SourceMapping } from '../source.js';
import { attempt, NoMapping, nameOf } from '../sql-expression.js';
import { rolesOf } from './access.js';
import { addMeasures, loseHidden, type MeasureContext, sharedNames } from './measure.js';
import { type Cube, cubeOf, loseAccess, parseCubeSql, referenceOf } from './read.js';

/**
 * Imports Cube data models in YAML as a manifest, plus a draft policy with the access policies that grants can express,
 * exactly or more narrowly.
 *
 * @throws ManifestProblems if a file has the wrong shape
 */
export function importCube(files: readonly SourceFile[], options: ModelImportOptions): ImportResult {
  const draft = new ImportDraft();
  const cubes = new Map<string, Cube>();
  const declared = new Set<string>();
  for (const file of files) {
    const root = SourceMapping.ofFile(file);
    if (root === null) continue;
    for (const part of root.parts('cubes')) {
      const name = part.needText('name');
      if (declared.has(name.toLowerCase())) part.declaredTwice('cube', name);
      declared.add(name.toLowerCase());
      const cube = cubeOf(part, draft, options, cubes);
      if (cube !== null) cubes.set(name.toLowerCase(), cube);
    }
    for (const view of root.parts('views')) {
      const name = view.needText('name');
      loseAccess(view);
      view.loseAll(`view \`${safeText(name)}\` has no counterpart: its members are those of its cubes`);
    }
  }
  for (const cube of cubes.values()) addJoins(cube, cubes, draft);
  const ctx: MeasureContext = { draft, cubes, made: new Map(), shared: sharedNames(cubes.values()) };
  for (const cube of cubes.values()) addMeasures(cube, ctx);
  for (const cube of cubes.values()) loseHidden(cube, ctx);
  const roles = rolesOf(cubes.values(), ctx, options);
  for (const file of files) file.check();
  return assemble(draft, roles, files, options);
}

type JoinKind = 'many_to_one' | 'one_to_many' | 'one_to_one';

const KINDS: ReadonlyMap<string, JoinKind> = new Map<string, JoinKind>([
  ['many_to_one', 'many_to_one'],
  ['belongs_to', 'many_to_one'],
  ['belongsTo', 'many_to_one'],
  ['one_to_many', 'one_to_many'],
  ['has_many', 'one_to_many'],
  ['hasMany', 'one_to_many'],
  ['one_to_one', 'one_to_one'],
  ['has_one', 'one_to_one'],
  ['hasOne', 'one_to_one'],
]);

/** Adds a relationship for each join of a cube. */
function addJoins(cube: Cube, cubes: ReadonlyMap<string, Cube>, draft: ImportDraft): void {
  for (const part of cube.part.parts('joins')) {
    const name = part.needText('name');
    const made = attempt(() => addJoin(part, name, cube, cubes, draft));
    if (!made.ok) part.loseAll(`the join to \`${safeText(name)}\` does not map: ${made.reason}`);
  }
}

interface JoinEnd {
  readonly cube: Cube;
  readonly column: ColumnDraft;
}

interface JoinColumns {
  readonly cube: Cube;
  readonly columns: readonly string[];
}

function addJoin(
  part: SourceMapping,
  name: string,
  cube: Cube,
  cubes: ReadonlyMap<string, Cube>,
  draft: ImportDraft,
): void {
  const written = part.needText('relationship');
  const kind = KINDS.get(written);
  if (kind === undefined) throw new NoMapping(`\`${safeText(written)}\` is not a kind of join`);
  const other = cubes.get(name.toLowerCase());
  if (other === undefined) throw new NoMapping(`cube \`${safeText(name)}\` is not there, or was lost`);
  const [own, target] = endsOf(part, cube, other);
  const [many, one] = kind === 'one_to_many' ? [target, own] : [own, target];
  const single = (side: JoinColumns): boolean => isKeyOf(side.cube.entity, side.columns);
  const both = kind === 'one_to_one' && single(many) && single(one);
  const [from, to] = kind === 'one_to_one' && !single(one) && single(many) ? [one, many] : [many, one];
  if (!single(to)) {
    const named = to.columns.map((column) => `\`${to.cube.name}.${column}\``).join(', ');
    throw new NoMapping(
      `${named} ${to.columns.length === 1 ? 'is' : 'are'} not the primary key, so it may not be unique`,
    );
  }
  if (kind === 'one_to_one' && !both)
    part.note(
      'relationship',
      'approximated',
      `only one end is a primary key, so the link is \`many_to_one\``,
    );
  for (const column of from.columns) from.cube.entity.links.add(column);
  const wanted = `${from.cube.entity.name}_${to.cube.entity.name}`.slice(0, 60);
  const order = to.columns.map((_, i) => i).sort((a, b) => keyPlace(to, a) - keyPlace(to, b));
  const [start = '', end = ''] = [from, to].map((side) => {
    const columns = order.map((i) => side.columns[i] ?? '');
    return endText(side.cube.entity.name, columns);
  });
  if (draft.relationships.some(({ document: d }) => `${d.from}` === `${start}` && `${d.to}` === `${end}`)) {
    part.note(null, 'approximated', 'the other cube declares the same link, which is one relationship');
    return;
  }
  draft.relationships.push({
    name: draft.relationshipNames.take(wanted),
    document: { from: start, to: end, kind: both ? 'one_to_one' : 'many_to_one' },
    place: part.place,
  });
}

/**
 * Returns the position of column `i` in the key of its cube. Links are sorted by it, so that links declared by either
 * cube list their columns in the same order.
 */
function keyPlace({ cube, columns }: JoinColumns, i: number): number {
  return cube.entity.key.indexOf(columns[i] ?? '');
}

const NO_LINK = 'only columns equal to columns are a link';

/** Returns the columns of each cube that `a = b AND c = d …` compares. @throws NoMapping for any other condition */
function endsOf(part: SourceMapping, cube: Cube, other: Cube): readonly [JoinColumns, JoinColumns] {
  const sql = parseCubeSql(part.needText('sql'));
  const pairs = conjunctsOf(sql.node).map((node): readonly [string, string] => {
    if (!('A_Expr' in node)) throw new NoMapping(NO_LINK);
    const { kind, name, lexpr, rexpr } = node.A_Expr;
    const op = name?.[0];
    if (kind !== 'AEXPR_OP' || op === undefined || !('String' in op) || op.String.sval !== '=')
      throw new NoMapping(NO_LINK);
    const ends = [lexpr, rexpr].map((side) => endOf(side, sql, part, cube, other));
    const own = ends.find((e) => e.cube === cube);
    const target = ends.find((e) => e.cube === other);
    if (own === undefined || target === undefined) throw new NoMapping('it does not compare the two cubes');
    return [own.column.name, target.column.name];
  });
  return [
    { cube, columns: pairs.map(([own]) => own) },
    { cube: other, columns: pairs.map(([, target]) => target) },
  ];
}

function conjunctsOf(node: Node): readonly Node[] {
  return 'BoolExpr' in node && node.BoolExpr.boolop === 'AND_EXPR'
    ? (node.BoolExpr.args ?? []).flatMap(conjunctsOf)
    : [node];
}

function endOf(
  node: Node | undefined,
  sql: ReturnType<typeof parseCubeSql>,
  part: SourceMapping,
  cube: Cube,
  other: Cube,
): JoinEnd {
  const name = node === undefined ? null : nameOf(node);
  if (name === null) throw new NoMapping(NO_LINK);
  const reference = referenceOf(name, sql, cube.name);
  const owner = [cube, other].find((c) => c.name.toLowerCase() === reference.cube.toLowerCase());
  if (owner === undefined) throw new NoMapping(`it names cube \`${safeText(reference.cube)}\``);
  const what = `the join to \`${other.name}\``;
  if (reference.kind === 'column')
    return { cube: owner, column: owner.entity.expose(reference.column, part.at('sql'), what) };
  const dimension = owner.dimensions.get(reference.member.toLowerCase());
  const column = dimension?.column ?? null;
  if (column !== null) {
    const found = owner.entity.columns.find((c) => c.name === column);
    if (found !== undefined) return { cube: owner, column: found };
  }
  const inner = dimension?.sql == null ? null : nameOf(dimension.sql.node);
  if (dimension?.sql == null || inner === null)
    throw new NoMapping(`\`${safeText(reference.member)}\` is not a column`);
  const below = referenceOf(inner, dimension.sql, owner.name);
  if (below.kind !== 'column') throw new NoMapping(`\`${safeText(reference.member)}\` is not a column`);
  return { cube: owner, column: owner.entity.expose(below.column, part.at('sql'), what) };
}
