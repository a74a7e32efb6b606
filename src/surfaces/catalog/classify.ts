import { LRUCache } from 'lru-cache';
import {
  type CommonNames,
  isCommon,
  oneStatement,
  type ParsedText,
  parseText,
  QueryError,
  shapeOf,
  typeNamed,
  withClauseNames,
} from 'osl-compiler';
import { isShort } from '../../ask/parsing/index.js';

/**
 * Relations of `pg_catalog` in the embedded engine. As in Postgres, unqualified names resolve to them first. A test
 * compares this list with the engine.
 */
const NAMES = `
  pg_aggregate pg_aios pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_auth_members pg_authid
  pg_available_extension_versions pg_available_extensions pg_backend_memory_contexts pg_cast pg_class pg_collation
  pg_config pg_constraint pg_conversion pg_cursors pg_database pg_db_role_setting pg_default_acl pg_depend
  pg_description pg_enum pg_event_trigger pg_extension pg_file_settings pg_foreign_data_wrapper pg_foreign_server
  pg_foreign_table pg_group pg_hba_file_rules pg_ident_file_mappings pg_index pg_indexes pg_inherits pg_init_privs
  pg_language pg_largeobject pg_largeobject_metadata pg_locks pg_matviews pg_namespace pg_opclass pg_operator
  pg_opfamily pg_parameter_acl pg_partitioned_table pg_policies pg_policy pg_prepared_statements pg_prepared_xacts
  pg_proc pg_publication pg_publication_namespace pg_publication_rel pg_publication_tables pg_range
  pg_replication_origin pg_replication_origin_status pg_replication_slots pg_rewrite pg_roles pg_rules pg_seclabel
  pg_seclabels pg_sequence pg_sequences pg_settings pg_shadow pg_shdepend pg_shdescription pg_shmem_allocations
  pg_shmem_allocations_numa pg_shseclabel pg_stat_activity pg_stat_all_indexes pg_stat_all_tables pg_stat_archiver
  pg_stat_bgwriter pg_stat_checkpointer pg_stat_database pg_stat_database_conflicts pg_stat_gssapi pg_stat_io
  pg_stat_progress_analyze pg_stat_progress_basebackup pg_stat_progress_cluster pg_stat_progress_copy
  pg_stat_progress_create_index pg_stat_progress_vacuum pg_stat_recovery_prefetch pg_stat_replication
  pg_stat_replication_slots pg_stat_slru pg_stat_ssl pg_stat_subscription pg_stat_subscription_stats
  pg_stat_sys_indexes pg_stat_sys_tables pg_stat_user_functions pg_stat_user_indexes pg_stat_user_tables pg_stat_wal
  pg_stat_wal_receiver pg_stat_xact_all_tables pg_stat_xact_sys_tables pg_stat_xact_user_functions
  pg_stat_xact_user_tables pg_statio_all_indexes pg_statio_all_sequences pg_statio_all_tables pg_statio_sys_indexes
  pg_statio_sys_sequences pg_statio_sys_tables pg_statio_user_indexes pg_statio_user_sequences pg_statio_user_tables
  pg_statistic pg_statistic_ext pg_statistic_ext_data pg_stats pg_stats_ext pg_stats_ext_exprs pg_subscription
  pg_subscription_rel pg_tables pg_tablespace pg_timezone_abbrevs pg_timezone_names pg_transform pg_trigger
  pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_type pg_user pg_user_mapping
  pg_user_mappings pg_views pg_wait_events`;

export const SYSTEM_RELATIONS: ReadonlySet<string> = new Set(NAMES.trim().split(/\s+/));

/**
 * Destination of a statement: the caller's catalog or the compiler. A statement must not mix the two or write to the
 * catalog.
 */
export type StatementLane =
  | { readonly kind: 'catalog' }
  | { readonly kind: 'data' }
  | { readonly kind: 'mixed' }
  | { readonly kind: 'writes'; readonly command: string };

const CATALOG: StatementLane = Object.freeze({ kind: 'catalog' });
const DATA: StatementLane = Object.freeze({ kind: 'data' });
const MIXED: StatementLane = Object.freeze({ kind: 'mixed' });

/**
 * Classifies one statement by its syntax tree. Text that does not parse or is too deep to walk counts as a data query,
 * which the compiler then refuses.
 */
export function classify(text: string): StatementLane {
  return classifyParsed(() => parseText(text)) ?? DATA;
}

/** Returns null if the text does not parse or is too deep to walk. */
function classifyParsed(parse: () => ParsedText): StatementLane | null {
  try {
    return laneOf(oneStatement(parse()).node as unknown as Tree); // the tree is plain data
  } catch (error) {
    if (error instanceof QueryError || error instanceof RangeError) return null;
    throw error;
  }
}

function laneOf(node: Tree): StatementLane {
  const select = node['SelectStmt'] ?? explainedQuery(node);
  if (!isTree(select)) return DATA;
  const { system, data, writes } = referencesOf({ SelectStmt: select });
  if (data) return system ? MIXED : DATA;
  if (!system && select === node['SelectStmt'] && isPlain(select)) return DATA;
  return writes === null ? CATALOG : Object.freeze({ kind: 'writes', command: writes });
}

/**
 * Returns the SELECT inside an EXPLAIN. The plan of a catalog query names only objects of the caller's catalog, so it
 * may be shown.
 */
function explainedQuery(node: Tree): unknown {
  const explain = node['ExplainStmt'];
  const query = isTree(explain) ? explain['query'] : null;
  return isTree(query) ? query['SelectStmt'] : null;
}

const PLAIN_PARTS: ReadonlySet<string> = new Set(['targetList', 'limitOption', 'op']);

/**
 * True for queries like `SELECT 1` that contain only constants, optionally cast to a type that the compiler knows. The
 * compiler answers these faster than the catalog.
 */
function isPlain(select: Tree): boolean {
  const targets = select['targetList'];
  return (
    Object.keys(select).every((part) => PLAIN_PARTS.has(part)) &&
    Array.isArray(targets) &&
    targets.every((t) => isTree(t) && isTree(t['ResTarget']) && isConstant(t['ResTarget']['val']))
  );
}

function isConstant(value: unknown): boolean {
  if (!isTree(value)) return false;
  const constant = value['A_Const'];
  if (isTree(constant)) return ['ival', 'sval', 'boolval', 'fval'].some((kind) => kind in constant);
  const cast = value['TypeCast'];
  if (!isTree(cast) || !isTree(cast['typeName'])) return false;
  const { names, typmods, arrayBounds } = cast['typeName'];
  const [name = '', rest] = namesOf(names).filter((n) => n !== 'pg_catalog');
  const plainType = rest === undefined && typmods === undefined && arrayBounds === undefined;
  const arg = cast['arg'];
  return plainType && typeNamed(name) !== null && (isConstant(arg) || (isTree(arg) && 'ParamRef' in arg));
}

const MAX_CACHED = 2_000;
/** Maximum length of cached texts, in UTF-16 code units. */
const MAX_CACHED_LENGTH = 16_384;

/**
 * Caches the classifications ("lanes") of texts by shape, so that texts that differ only in literals are parsed once.
 *
 * INVARIANT: a lane shared by several texts was derived from a syntax tree, and `laneOf` never depends on the value of
 * a literal, only on names and on whether an expression is a constant.
 */
export class Classifier {
  readonly #lanes = new LRUCache<string, StatementLane>({ max: MAX_CACHED });

  /** Returns the lane of a text. `parse` is used for texts too long to parse on this thread. */
  laneOf(text: string, parse: (text: string) => Promise<ParsedText>): StatementLane | Promise<StatementLane> {
    if (!MAY_BE_CATALOG.test(text)) return DATA;
    const shape = MAY_CHECK_LITERALS.test(text) ? null : (shapeOf(text)?.shape ?? null);
    const cached =
      (shape === null ? undefined : this.#lanes.get(shapeKey(shape))) ?? this.#lanes.get(textKey(text));
    if (cached !== undefined) return cached;
    const remember = (parsed: () => ParsedText) => this.#remember(text, shape, classifyParsed(parsed));
    if (isShort(text)) return remember(() => parseText(text));
    return parse(text).then(
      (parsed) => remember(() => parsed),
      (error: unknown) => {
        if (error instanceof QueryError) return DATA; // the compiler will fail in the same way and record the denial
        throw error;
      },
    );
  }

  /** Caches a lane by the shape of its text, or by the text itself if that has no shape or `parsedLane` is null. */
  #remember(text: string, shape: string | null, parsedLane: StatementLane | null): StatementLane {
    const lane = parsedLane ?? DATA;
    if (text.length > MAX_CACHED_LENGTH) return lane;
    this.#lanes.set(shape === null || parsedLane === null ? textKey(text) : shapeKey(shape), lane);
    return lane;
  }
}

// Prefixes prevent collisions: a text without a shape can equal the shape of another text.
function textKey(text: string): string {
  return `t ${text}`;
}

function shapeKey(shape: string): string {
  return `s ${shape}`;
}

/** Matches texts that may contain `float(n)`, the only syntax where parsing checks the value of a literal. */
const MAY_CHECK_LITERALS = /\bfloat\b/i;

/**
 * Texts that do not match are treated as data queries without being parsed: they have a FROM outside of strings, and
 * neither name a system relation, escape an identifier nor call a function in FROM. A catalog query missed here is
 * refused by the compiler.
 */
const MAY_BE_CATALOG =
  /^\s*with\b|pg_|information_schema|u&"|\bfrom\s*\(|(?:\bfrom|\bjoin|,|\blateral)\s+[\w."]+\s*\(|'[^']*\bfrom\b|^(?!.*\bfrom\b)/is;

/** Syntax tree node as plain data. Unknown kinds are walked like any other. */
type Tree = Readonly<Record<string, unknown>>;

interface References {
  system: boolean;
  /** True if the statement names a relation outside of the system catalogs, or a table function of OSL-SQL. */
  data: boolean;
  /**
   * First command by which the statement writes or locks rows: `SELECT INTO`, `SELECT FOR UPDATE`, `INSERT`, …; null if
   * it does neither.
   */
  writes: string | null;
}

type CteScope = CommonNames | null;

const WRITES: ReadonlyMap<string, string> = new Map([
  ['InsertStmt', 'INSERT'],
  ['UpdateStmt', 'UPDATE'],
  ['DeleteStmt', 'DELETE'],
  ['MergeStmt', 'MERGE'],
]);
const SYSTEM_SCHEMAS: ReadonlySet<string> = new Set(['pg_catalog', 'information_schema']);
const TABLE_FUNCTIONS: ReadonlySet<string> = new Set(['retrieve', 'traverse']);

/** Finds the kinds of relations that `node` reads, except common table expressions in scope, and whether it writes. */
function referencesOf(node: Tree): References {
  const references: References = { system: false, data: false, writes: null };
  visit(node, null, references);
  return references;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function visit(value: unknown, scope: CteScope, references: References): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, scope, references);
    return;
  }
  if (!isTree(value)) return;
  const inner = withClauseScope(value, scope, references);
  for (const [key, child] of Object.entries(value)) {
    if (key === 'withClause') continue; // already walked by withClauseScope
    noteReferences(key, child, inner, references);
    visit(child, inner, references);
  }
}

function withClauseScope(value: Tree, scope: CteScope, references: References): CteScope {
  const clause = value['withClause'];
  if (!isTree(clause)) return scope;
  const ctes = (Array.isArray(clause['ctes']) ? clause['ctes'] : [])
    .map((cte) => (isTree(cte) ? cte['CommonTableExpr'] : null))
    .filter(isTree);
  const names = withClauseNames(
    ctes.map((cte) => String(cte['ctename'])),
    clause['recursive'] === true,
    scope,
  );
  for (const [i, cte] of ctes.entries()) visit(cte, names.within(i), references);
  return names.behind;
}

function noteReferences(key: string, child: unknown, scope: CteScope, references: References): void {
  if (key === 'RangeVar' && isTree(child)) noteRelation(child, scope, references);
  else if (key === 'RangeFunction' && isTree(child)) noteFunction(child, references);
  else if (key === 'intoClause' && isTree(child)) references.writes ??= 'SELECT INTO';
  else if (key === 'lockingClause') references.writes ??= 'SELECT FOR UPDATE';
  else references.writes ??= WRITES.get(key) ?? null;
}

function noteRelation(node: Tree, scope: CteScope, references: References): void {
  const { catalogname, schemaname, relname } = node;
  if (schemaname === undefined) {
    if (isCommon(String(relname), scope)) return;
    if (SYSTEM_RELATIONS.has(String(relname))) references.system = true;
    else references.data = true;
    return;
  }
  const isOwnDatabase = catalogname === undefined || catalogname === 'osl';
  if (isOwnDatabase && SYSTEM_SCHEMAS.has(String(schemaname))) references.system = true;
  else references.data = true;
}

/** `RETRIEVE(…)` and `TRAVERSE(…)` read data; other functions in FROM are functions of the catalog engine. */
function noteFunction(node: Tree, references: References): void {
  const call = firstCall(node['functions']);
  const names = call === null ? [] : namesOf(call['funcname']);
  if (names.length === 1 && TABLE_FUNCTIONS.has(names[0] ?? '')) references.data = true;
}

function firstCall(functions: unknown): Tree | null {
  const list: unknown = Array.isArray(functions) ? functions[0] : null;
  const items = isTree(list) && isTree(list['List']) ? list['List']['items'] : null;
  const item: unknown = Array.isArray(items) ? items[0] : null;
  return isTree(item) && isTree(item['FuncCall']) ? item['FuncCall'] : null;
}

function namesOf(list: unknown): readonly string[] {
  return (Array.isArray(list) ? list : []).map((part: unknown) =>
    isTree(part) && isTree(part['String']) ? String(part['String']['sval']) : '',
  );
}
