import type { Node } from '@pgsql/types';
import type { ColumnDraft, Draft } from '../draft.js';
import type { Part } from '../part.js';
import { shown } from '../shown.js';
import { fit, NoFit, nameOf } from '../sql/expression.js';
import { type Cube, parseCubeSql, referenceOf } from './sql.js';

type Kind = 'many_to_one' | 'one_to_many' | 'one_to_one';

const KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
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

/** The relationships that the joins of a cube declare. */
export function addJoins(cube: Cube, cubes: ReadonlyMap<string, Cube>, draft: Draft): void {
  for (const part of cube.part.parts('joins')) {
    const name = part.needText('name');
    const made = fit(() => addJoin(part, name, cube, cubes, draft));
    if (!made.ok) part.loseAll(`the join to \`${shown(name)}\` does not map: ${made.reason}`);
  }
}

interface End {
  readonly cube: Cube;
  readonly column: ColumnDraft;
}

function addJoin(part: Part, name: string, cube: Cube, cubes: ReadonlyMap<string, Cube>, draft: Draft): void {
  const written = part.needText('relationship');
  const kind = KINDS.get(written);
  if (kind === undefined) throw new NoFit(`\`${shown(written)}\` is no kind of join`);
  const other = cubes.get(name.toLowerCase());
  if (other === undefined) throw new NoFit(`cube \`${shown(name)}\` is not there, or was lost`);
  const [own, target] = endsOf(part, cube, other);
  const [many, one] = kind === 'one_to_many' ? [target, own] : [own, target];
  const single = (end: End): boolean =>
    end.cube.entity.key.length === 1 && end.cube.entity.key[0] === end.column.name;
  const both = kind === 'one_to_one' && single(many) && single(one);
  const [from, to] = kind === 'one_to_one' && !single(one) && single(many) ? [one, many] : [many, one];
  if (!single(to))
    throw new NoFit(`\`${to.cube.name}.${to.column.name}\` is not the primary key, so it may not be unique`);
  if (kind === 'one_to_one' && !both)
    part.note(
      'relationship',
      'approximated',
      `only one end is a primary key, so the link is \`many_to_one\``,
    );
  from.cube.entity.links.add(from.column.name);
  const wanted = `${from.cube.entity.name}_${to.cube.entity.name}`.slice(0, 60);
  const ends = [from, to].map((e) => `${e.cube.entity.name}.${e.column.name}`);
  if (draft.relationships.some(({ document: d }) => d.from === ends[0] && d.to === ends[1])) {
    part.note(null, 'approximated', 'the other cube declares the same link, which is one relationship');
    return;
  }
  draft.relationships.push({
    name: draft.relationshipNames.take(wanted),
    document: { from: ends[0] ?? '', to: ends[1] ?? '', kind: both ? 'one_to_one' : 'many_to_one' },
    place: part.place,
  });
}

function endsOf(part: Part, cube: Cube, other: Cube): readonly [End, End] {
  const sql = parseCubeSql(part.needText('sql'));
  if (!('A_Expr' in sql.node)) throw new NoFit('only one column equal to one other is a link');
  const { kind, name, lexpr, rexpr } = sql.node.A_Expr;
  const op = name?.[0];
  if (kind !== 'AEXPR_OP' || op === undefined || !('String' in op) || op.String.sval !== '=')
    throw new NoFit('only one column equal to one other is a link');
  const ends = [lexpr, rexpr].map((node) => endOf(node, sql, part, cube, other));
  const own = ends.find((e) => e.cube === cube);
  const target = ends.find((e) => e.cube === other);
  if (own === undefined || target === undefined) throw new NoFit('it does not compare the two cubes');
  return [own, target];
}

function endOf(
  node: Node | undefined,
  sql: ReturnType<typeof parseCubeSql>,
  part: Part,
  cube: Cube,
  other: Cube,
): End {
  const name = node === undefined ? null : nameOf(node);
  if (name === null) throw new NoFit('only one column equal to one other is a link');
  const reference = referenceOf(name, sql, cube.name);
  const owner = [cube, other].find((c) => c.name.toLowerCase() === reference.cube.toLowerCase());
  if (owner === undefined) throw new NoFit(`it names cube \`${shown(reference.cube)}\``);
  const what = `the join to \`${other.name}\``;
  if (reference.kind === 'column')
    return { cube: owner, column: owner.entity.need(reference.column, part.at('sql'), what) };
  const dimension = owner.dimensions.get(reference.member.toLowerCase());
  const column = dimension?.column ?? null;
  if (column !== null) {
    const found = owner.entity.columns.find((c) => c.name === column);
    if (found !== undefined) return { cube: owner, column: found };
  }
  const inner = dimension?.sql == null ? null : nameOf(dimension.sql.node);
  if (dimension?.sql == null || inner === null)
    throw new NoFit(`\`${shown(reference.member)}\` is no column`);
  const below = referenceOf(inner, dimension.sql, owner.name);
  if (below.kind !== 'column') throw new NoFit(`\`${shown(reference.member)}\` is no column`);
  return { cube: owner, column: owner.entity.need(below.column, part.at('sql'), what) };
}
