import { inputsOf } from '../assemble.js';
import type { MetricBody } from '../draft.js';
import { safeText } from '../names.js';
import { report, type SourceMapping } from '../source.js';
import { attempt, NoMapping, namesIn, parseExpression } from '../sql-expression.js';
import { key, type MeasureContext } from './measure.js';
import { type Cube, isHidden } from './read.js';

/** Visibility of a member under a policy: with its values, with its mask, or not at all. */
type MemberVisibility = 'clear' | 'masked' | 'none';

/** Columns of a cube's entity that a policy grants. Every column in `masked` shows its mask. */
export interface GrantedColumns {
  readonly clear: ReadonlySet<string>;
  readonly masked: ReadonlySet<string>;
}

/** A measure or a computed dimension. Callers can query it if they are granted the columns that it reads. */
interface MadeMember {
  readonly name: string;
  readonly what: 'measure' | 'dimension';
  readonly visibility: MemberVisibility;
  /** The columns of the cube's own entity that the member reads. */
  readonly reads: readonly string[];
  /** True if the member also reads another cube, whose grants are not known here. */
  readonly others: boolean;
}

/**
 * Selects the columns to grant. No caller may get a member that the policy withholds or masks, or see a member computed
 * from masked values if the policy shows it unmasked. Columns that are left out for this reason are reported, and so
 * are the members lost with them.
 *
 * @throws NoMapping if nothing can be granted
 */
export function columnsOf(policy: SourceMapping, cube: Cube, ctx: MeasureContext): GrantedColumns {
  const visibility = visibilityOf(policy, cube, ctx);
  const made = [...madeMeasures(cube, ctx, visibility), ...madeDimensions(cube, visibility)];
  const clear = new Set<string>();
  const masked = new Set<string>();
  for (const { name, column, isPublic } of cube.dimensions.values()) {
    if (column === null || !isPublic) continue;
    if (visibility(name) === 'clear') clear.add(column);
    else if (visibility(name) === 'masked') masked.add(column);
  }
  const leave = (column: string, why: string): void => {
    if (!clear.delete(column) && !masked.delete(column)) return;
    policy.note(null, 'lost', `column \`${column}\` is left out of the grant: ${why}`, 'high');
  };
  for (const column of cube.entity.key.concat([...cube.entity.links]))
    if (masked.has(column)) leave(column, 'the column of a key or a link is not masked');
  for (const column of sharedColumns(cube, clear))
    leave(column, 'another dimension over the same column is granted with its values');
  // Terminates because every round but the last leaves out a column.
  for (let before = -1; before !== clear.size + masked.size; ) {
    before = clear.size + masked.size;
    for (const member of made)
      for (const column of columnsTooMany(member, { clear, masked })) leave(column, reasonFor(member));
  }
  if (clear.size + masked.size === 0) throw new NoMapping('no column of it is granted');
  for (const member of made) reportMade(member, { clear, masked }, policy);
  return { clear, masked };
}

/** Returns the columns that are not in `clear` but show the same table column as one in `clear`. */
function sharedColumns({ entity: { columns } }: Cube, clear: ReadonlySet<string>): readonly string[] {
  const shown = new Set(columns.filter((c) => clear.has(c.name)).map((c) => c.physical));
  return columns.filter((c) => !clear.has(c.name) && shown.has(c.physical)).map((c) => c.name);
}

/** Returns the columns to leave out because of `member`. @throws NoMapping if leaving them out is not enough */
function columnsTooMany(member: MadeMember, { clear, masked }: GrantedColumns): readonly string[] {
  const { name, what, visibility, reads, others } = member;
  const isClear = reads.every((column) => clear.has(column));
  const isThere = reads.every((column) => clear.has(column) || masked.has(column));
  switch (visibility) {
    case 'clear':
      return isThere && !isClear ? reads.filter((column) => masked.has(column)) : [];
    case 'masked':
    case 'none':
      if (!isClear) return [];
      if (reads.length === 0 || others) throw new NoMapping(withheld(name, what));
      return reads;
  }
}

function withheld(name: string, what: MadeMember['what']): string {
  return `${what} \`${safeText(name)}\` is not granted, but all that it is made of is`;
}

function reasonFor({ name, what, visibility }: MadeMember): string {
  return visibility === 'clear'
    ? `${what} \`${safeText(name)}\` is granted with its values, and would be made of masked ones`
    : withheld(name, what);
}

function reportMade(member: MadeMember, { clear, masked }: GrantedColumns, policy: SourceMapping): void {
  const { name, what, visibility, reads } = member;
  const isClear = reads.every((column) => clear.has(column));
  const isThere = reads.every((column) => clear.has(column) || masked.has(column));
  const called = `${what} \`${safeText(name)}\``;
  if (visibility === 'clear') {
    if (isClear) return;
    const reason = `${called} is granted without the columns that it is made of, so it is left out`;
    policy.note(null, 'lost', reason, 'high');
  } else if (isThere) {
    const there = visibility === 'masked' ? 'masked' : 'not granted';
    const reason = `${called} is ${there} there; here it is made of masked columns, and shows none of their values`;
    policy.note(null, 'approximated', reason, 'high');
  }
}

/** Returns a function that gives a member's visibility. Without `member_level`, all are visible. @throws NoMapping */
function visibilityOf(
  policy: SourceMapping,
  cube: Cube,
  ctx: MeasureContext,
): (name: string) => MemberVisibility {
  const isShown = memberTest(policy, 'member_level', cube, ctx) ?? (() => true);
  if (policy.has('member_masking') && !policy.has('member_level'))
    throw new NoMapping('it masks members without saying which of them are shown');
  const isMasked = memberTest(policy, 'member_masking', cube, ctx) ?? (() => false);
  return (name) => (isShown(name) ? 'clear' : isMasked(name) ? 'masked' : 'none');
}

/** Returns a test for the members selected under `at`; null if that key is absent. @throws NoMapping */
function memberTest(
  policy: SourceMapping,
  at: 'member_level' | 'member_masking',
  cube: Cube,
  ctx: MeasureContext,
): ((name: string) => boolean) | null {
  const level = policy.child(at);
  if (level === null) return null;
  mustKnow(level, ['includes', 'excludes']);
  const included = level.has('includes') ? new Set(level.texts('includes').map(lastPart)) : null;
  const excluded = new Set(level.has('excludes') ? level.texts('excludes').map(lastPart) : []);
  for (const list of ['includes', 'excludes'] as const) reportUnknown(level, list, cube, ctx);
  return (name) => {
    const own = name.toLowerCase();
    if (excluded.has('*') || excluded.has(own)) return false;
    return included === null || included.has('*') || included.has(own);
  };
}

/** Reports listed members that were imported neither as a column nor as a metric. */
function reportUnknown(
  level: SourceMapping,
  list: 'includes' | 'excludes',
  cube: Cube,
  ctx: MeasureContext,
): void {
  if (!level.isList(list)) return;
  for (const [i, text] of level.texts(list).entries()) {
    const name = lastPart(text);
    const known =
      name === '*' ||
      cube.dimensions.get(name)?.isPublic === true ||
      (ctx.made.get(key(cube, name)) ?? null) !== null;
    if (known) continue;
    const place = { file: level.file, path: [...level.path, list, i] };
    report(place, 'lost', `\`${safeText(text)}\` is not a column and no metric here`);
  }
}

/** Returns a member's name in lower case, without the cube's name. */
function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}

function madeMeasures(
  cube: Cube,
  ctx: MeasureContext,
  visibility: (name: string) => MemberVisibility,
): readonly MadeMember[] {
  return [...cube.measures].flatMap(([name, part]): readonly MadeMember[] => {
    const metric = ctx.made.get(key(cube, name)) ?? null;
    if (metric === null) return [];
    const shown = isHidden(part) ? 'none' : visibility(name);
    return [{ name, what: 'measure', visibility: shown, ...inputsIn(metric, cube, ctx, []) }];
  });
}

type MemberReads = Pick<MadeMember, 'reads' | 'others'>;

/** Returns the columns that a metric reads, even indirectly. @throws NoMapping if it refers to itself */
function inputsIn(name: string, cube: Cube, ctx: MeasureContext, within: readonly string[]): MemberReads {
  const document: MetricBody | undefined = ctx.draft.metric(name)?.document;
  if (document === undefined || within.includes(name))
    throw new NoMapping(`measure \`${safeText(name)}\` is made of itself`);
  const inputs = inputsOf(document).map((i) => inputsIn(i, cube, ctx, [...within, name]));
  if (inputs.length > 0)
    return { reads: [...new Set(inputs.flatMap((i) => i.reads))], others: inputs.some((i) => i.others) };
  if (document.entity !== cube.entity.name) return { reads: [], others: true };
  return readsOf([document.expression, document.filter].filter((text) => text !== undefined));
}

function readsOf(texts: readonly string[]): MemberReads {
  const names = texts.flatMap((text) => namesIn(parseExpression(text)));
  const own = names.filter((parts) => parts.length === 1).map((parts) => parts[0] ?? '');
  return { reads: [...new Set(own)], others: names.some((parts) => parts.length > 1) };
}

function madeDimensions(cube: Cube, visibility: (name: string) => MemberVisibility): readonly MadeMember[] {
  return cube.entity.computing.flatMap(({ name, text }): readonly MadeMember[] => {
    const made = attempt(text);
    if (!made.ok) return [];
    return [{ name, what: 'dimension', visibility: visibility(name), ...readsOf([made.value]) }];
  });
}

/** Rejects unknown and empty keys, because they could be restrictions that the import would ignore. */
export function mustKnow(part: SourceMapping, keys: readonly string[]): void {
  for (const key of part.keys()) {
    if (!keys.includes(key))
      throw new NoMapping(`\`${safeText(key)}\` of an access policy has no counterpart`);
    if (!part.has(key)) throw new NoMapping(`its \`${key}\` is empty`);
  }
}
