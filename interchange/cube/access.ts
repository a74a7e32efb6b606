import type { GrantDocument } from '../../policy/document.js';
import { isObject } from '../../src/base/is-object.js';
import { type ColumnDraft, PolicyDraft } from '../draft.js';
import { legalName, safeText, TakenNames } from '../names.js';
import { type ImportOptions, schemaOf } from '../options.js';
import type { Part } from '../part.js';
import { attempt, NoMapping } from '../sql/expression.js';
import { mustKnow } from './known-keys.js';
import type { MeasureContext } from './measure.js';
import { columnsOf, type GrantedColumns } from './members.js';
import { rowsOf } from './row-filter.js';
import type { Cube } from './sql.js';

/**
 * Converts the access policies of cubes to roles. A policy that no grant can express, either exactly or more narrowly,
 * grants nothing and is reported: an import never grants more than its source.
 */
export function rolesOf(cubes: Iterable<Cube>, ctx: MeasureContext, options: ImportOptions): PolicyDraft {
  const all = [...cubes];
  const draft = new PolicyDraft();
  const everyone = roleForAll(all);
  const policies = all.flatMap((cube) => policiesOf(cube, ctx, everyone));
  const labels = labelMasked(policies, all, options, draft);
  for (const { part, cube, roles, columns, rows } of policies) {
    const granted = [...columns.clear, ...columns.masked];
    const unmask = [...columns.clear].flatMap((name) => labels.get(columnNamed(name, cube)) ?? []);
    const grant: GrantDocument = {
      on: cube.entity.name,
      columns: granted,
      ...(rows !== null && { rows }),
      ...(unmask.length > 0 && { unmask }),
    };
    for (const role of roles) draft.add(role, grant, part.place);
    const given = roles.map((r) => `\`${r}\``).join(', ');
    part.note(
      null,
      'approximated',
      `it is a grant of role ${given}, which nobody has; joins need their keys granted too`,
      'high',
    );
  }
  for (const cube of all) reportMasks(cube, labels);
  return draft;
}

/** An access policy that a grant can express. */
interface CubePolicy {
  readonly part: Part;
  readonly cube: Cube;
  readonly roles: readonly string[];
  readonly columns: GrantedColumns;
  readonly rows: string | null;
}

function policiesOf(cube: Cube, ctx: MeasureContext, everyone: string): readonly CubePolicy[] {
  if (!cube.part.has('access_policy')) return [];
  return cube.part.parts('access_policy').flatMap((part) => {
    const read = attempt(() => policyOf(part, cube, ctx, everyone));
    if (read.ok) return [read.value];
    const groups = groupsIn(part).map((g) => `\`${safeText(g)}\``);
    const whose = groups.length === 0 ? '' : ` of ${groups.join(', ')}`;
    part.loseAll(`the access policy${whose} grants nobody anything: ${read.reason}`, 'high');
    return [];
  });
}

function policyOf(part: Part, cube: Cube, ctx: MeasureContext, everyone: string): CubePolicy {
  mustKnow(part, ['group', 'groups', 'role', 'member_level', 'row_level', 'conditions', 'member_masking']);
  if (part.has('conditions')) throw new NoMapping('it holds under conditions, and a grant has none');
  const roles = rolesIn(part, everyone);
  const rows = rowsOf(part, cube);
  return { part, cube, roles, columns: columnsOf(part, cube, ctx), rows };
}

/** Name of the role for policies of `"*"`; no group has it. */
function roleForAll(cubes: readonly Cube[]): string {
  const taken = new TakenNames();
  for (const cube of cubes)
    for (const policy of cube.part.has('access_policy') ? cube.part.parts('access_policy') : [])
      for (const group of groupsIn(policy)) if (!taken.has(group)) taken.take(group);
  return taken.take('everyone');
}

function groupsIn(policy: Part): readonly string[] {
  const written = [policy.text('group'), policy.text('role')].filter((r) => r !== null);
  return [...written, ...(policy.has('groups') ? policy.texts('groups') : [])];
}

function rolesIn(policy: Part, everyone: string): readonly string[] {
  const all = groupsIn(policy);
  if (all.length === 0) throw new NoMapping('it names no group');
  return all.map((name) => {
    if (name === '*') return everyone;
    if (legalName(name) !== name) throw new NoMapping(`\`${safeText(name)}\` cannot be the name of a role`);
    return name;
  });
}

function columnNamed(name: string, { entity }: Cube): ColumnDraft {
  const column = entity.columns.find((c) => c.name === name);
  if (column === undefined) throw new TypeError(`entity ${entity.name} has no column ${name}`);
  return column;
}

/**
 * Gives a label of its own to each column of a table that a policy masks. A label hides the column from all who do not
 * unmask it, in every cube over the table.
 */
function labelMasked(
  policies: readonly CubePolicy[],
  cubes: readonly Cube[],
  options: ImportOptions,
  draft: PolicyDraft,
): ReadonlyMap<ColumnDraft, string> {
  const byColumn = new Map<string, string>();
  const names = new TakenNames();
  for (const { cube, columns } of policies) {
    for (const name of columns.masked) {
      const key = upstreamKey(columnNamed(name, cube), cube, options);
      if (byColumn.has(key)) continue;
      const label = names.take(`${cube.entity.name}_${name}`.slice(0, 60));
      byColumn.set(key, label);
      draft.mask(label);
    }
  }
  const labels = new Map<ColumnDraft, string>();
  for (const cube of cubes) {
    for (const column of cube.entity.columns) {
      const label = byColumn.get(upstreamKey(column, cube, options));
      if (label === undefined) continue;
      column.sensitivity = label;
      labels.set(column, label);
    }
  }
  return labels;
}

/** Identifies the column of a table that `column` shows. */
function upstreamKey({ physical }: ColumnDraft, { entity: { table } }: Cube, options: ImportOptions): string {
  return JSON.stringify([table.connector, schemaOf(table, options), table.table, physical]);
}

/** Reports what became of the `mask` of each member. */
function reportMasks(cube: Cube, labels: ReadonlyMap<ColumnDraft, string>): void {
  for (const { part, column } of cube.dimensions.values()) {
    if (column === null || !part.has('mask')) continue;
    if (labels.has(columnNamed(column, cube))) {
      const stated = isObject(part.members['mask']) ? part.child('mask') : null;
      part.ignore('mask');
      const reason = 'where the column is masked its value is NULL';
      (stated ?? part).note(stated === null ? 'mask' : 'sql', 'approximated', reason, 'high');
    } else part.lose('mask', 'no access policy that is a grant masks it');
  }
  for (const part of cube.measures.values())
    part.lose('mask', 'a metric is masked only through the columns that it is made of');
}
