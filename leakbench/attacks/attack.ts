import type { LoginChanges, StatementLanguage } from '../endpoint.js';

export const CLASSES = [
  'errors',
  'predicates',
  'joins',
  'aggregates',
  'casts',
  'catalog',
  'cursors',
  'copy',
  'session',
  'identity',
  'inference',
  'timing',
] as const;
export type AttackClass = (typeof CLASSES)[number];

/** Statements of one session that may tell hidden data. */
export interface Attack {
  /** `errors-07`: the class, and a number that does not change. */
  readonly id: string;
  readonly class: AttackClass;
  readonly steps: readonly string[];
  /** Parameters of the last step. */
  readonly values?: readonly (string | null)[];
  readonly login?: LoginChanges;
  /** Statements that every other caller asks before the clerk, in sessions that stay open. */
  readonly before?: readonly string[];
  /** Statements that the clerk asks before the other callers, in the same session as `steps`. */
  readonly first?: readonly string[];
  /** SQL by default. */
  readonly language?: StatementLanguage;
  /** Where it is known from. */
  readonly source: string;
  /** Property of an endpoint that stops it. */
  readonly defence: string;
}

/** One attack in a table: its statements alone, or with the properties that differ from the defaults. */
type AttackRow = string | readonly string[] | AttackInFull;

interface AttackInFull extends Partial<Pick<Attack, 'values' | 'login' | 'before' | 'first' | 'language'>> {
  readonly ask: string | readonly string[];
}

type AttackOfSource = Omit<Attack, 'id' | 'class'>;

/** Attacks that are known from one source, and stopped by one defence. */
export function from(
  { source, defence }: AttackSource,
  rows: readonly AttackRow[],
): readonly AttackOfSource[] {
  return rows.map((row) => {
    const { ask, ...more } = isWritten(row) ? row : { ask: row };
    return { steps: typeof ask === 'string' ? [ask] : ask, ...more, source, defence };
  });
}

/** Attacks of a class, numbered in order: add new ones at the end. */
export function attacks(of: AttackClass, rows: readonly AttackOfSource[]): readonly Attack[] {
  return rows.map((row, i) => ({ id: `${of}-${String(i + 1).padStart(2, '0')}`, class: of, ...row }));
}

function isWritten(row: AttackRow): row is AttackInFull {
  return typeof row === 'object' && 'ask' in row;
}

/** Where an attack is known from, and the property of an endpoint that stops it. */
interface AttackSource {
  readonly source: string;
  readonly defence: string;
}

const source = (from: string, defence: string): AttackSource => ({ source: from, defence });

/** Numbers are those of the public list of vulnerabilities (CVE); documentation is that of the version current in 2026. */
export const SOURCE = {
  // ---------------------------------------------------------------- papers
  errorOrder: source(
    'Kabra et al., Redundancy and Information Leakage in Fine-Grained Access Control, SIGMOD 2006',
    'nothing that can fail is evaluated on a row before its filter',
  ),
  filters: source(
    'Rizvi et al., Extending Query Rewriting Techniques for Fine-Grained Access Control, SIGMOD 2004',
    'each relation is filtered before anything else reads it',
  ),
  eachRelation: source(
    'Wang et al., On the Correctness Criteria of Fine-Grained Access Control in Relational Databases, VLDB 2007',
    'each relation is filtered by itself, wherever it stands in a statement',
  ),
  cells: source(
    'LeFevre et al., Limiting Disclosure in Hippocratic Databases, VLDB 2004',
    'a hidden cell is masked before conditions, orders and groups read it',
  ),
  figures: source(
    'Denning, Secure Statistical Databases with Random Sample Queries, TODS 1980',
    'aggregates are made of filtered rows alone',
  ),
  tracker: source(
    'Denning et al., The Tracker: A Threat to Statistical Database Security, TODS 1979',
    'groups and their differences are made of filtered rows alone',
  ),
  reconstruction: source(
    'Dinur and Nissim, Revealing Information while Preserving Privacy, PODS 2003',
    'an answer is a function of what the caller may see',
  ),
  inference: source(
    'Farkas and Jajodia, The Inference Problem: A Survey, SIGKDD Explorations 2002',
    'an answer is a function of what the caller may see',
  ),
  writes: source(
    'Guarnieri et al., Strong and Provably Secure Database Access Control, EuroS&P 2016',
    'a statement that writes tells nothing of rows that its caller may not see',
  ),
  time: source(
    'Kocher, Timing Attacks on Implementations of Diffie-Hellman, RSA, DSS, and Other Systems, CRYPTO 1996',
    'hidden rows are not visited',
  ),
  indexTime: source(
    'Futoransky et al., The ND2DB Attack: Database Content Extraction Using Timing Attacks on the Indexing Algorithms, WOOT 2007',
    'filters use indexes, so that hidden rows are not visited',
  ),
  // ---------------------------------------------------------------- vulnerabilities
  errorValues: source(
    'CVE-2014-8161 and CVE-2021-3393 (PostgreSQL): messages with values that their reader may not see',
    'messages carry no value of a hidden row',
  ),
  wholeRows: source(
    'CVE-2021-20229 (PostgreSQL): a privilege on one column gave access to others',
    'a row is made of what the caller may see of it, whatever form it takes',
  ),
  statistics: source(
    'CVE-2017-7484, CVE-2019-10130 and CVE-2025-8713 (PostgreSQL): statistics of hidden rows',
    'statistics of governed tables are not shown, and no function of the caller reads them',
  ),
  reusedPlans: source(
    'CVE-2016-2193 and CVE-2023-2455 (PostgreSQL): plans reused for another role',
    'what is kept is bound to its caller and to the versions of its rules',
  ),
  subqueries: source(
    'CVE-2024-10976 (PostgreSQL): row security of subqueries, common tables and plans of another user',
    'each relation is filtered for the caller who asks now',
  ),
  setRole: source(
    'CVE-2024-10978 (PostgreSQL): SET ROLE and SET SESSION AUTHORIZATION reset to a wrong user',
    'nothing in a session changes who asks',
  ),
  definer: source(
    'CVE-2007-6600 and CVE-2020-25695 (PostgreSQL): functions of others run with more rights',
    'a caller creates nothing that runs with other rights',
  ),
  searchPath: source(
    'CVE-2018-1058 (PostgreSQL): names that the search path finds elsewhere',
    'settings and objects of a session cannot change what names mean',
  ),
  merge: source(
    'CVE-2023-39418 (PostgreSQL): MERGE without the policies of its parts',
    'statements that write obey the rules of those that read',
  ),
  onConflict: source(
    'CVE-2017-15099 (PostgreSQL): INSERT … ON CONFLICT disclosed rows',
    'statements that write obey the rules of those that read',
  ),
  programs: source(
    'CVE-2019-9193 (PostgreSQL, disputed): COPY runs programs',
    'no statement reaches files or programs of the server',
  ),
  search: source(
    'CVE-2025-30352 (Directus): a search over fields that its caller may not see',
    'a search reads visible fields alone',
  ),
  // ---------------------------------------------------------------- documentation
  leakyViews: source(
    'PostgreSQL documentation, Rules and Privileges: cheap functions in WHERE run before the filter of a view',
    'only what cannot fail or tell is evaluated before the filter',
  ),
  plans: source(
    'PostgreSQL documentation, Rules and Privileges: plans and run times tell of unseen rows',
    'plans are shown without estimates and counts of hidden rows',
  ),
  catalogs: source(
    'PostgreSQL documentation, System Catalogs: readable by everybody, for tables of others too',
    'catalogs list what the caller may see',
  ),
  counters: source(
    'PostgreSQL documentation, The Cumulative Statistics System',
    'counters of governed tables are not shown',
  ),
  sizes: source(
    'PostgreSQL documentation, Database Object Size Functions',
    'sizes of governed tables are not shown',
  ),
  columnGrants: source(
    'PostgreSQL documentation, GRANT: privileges on columns',
    'a column that is not granted does not exist, wherever it is named',
  ),
  textQueries: source(
    'PostgreSQL documentation, Mapping Tables to XML, and ts_stat: functions that run a text as a statement',
    'functions that run a text as a statement are refused',
  ),
  copyRules: source(
    'PostgreSQL documentation, COPY: its own rules under row security',
    'bulk formats take the way of queries',
  ),
  cursorRules: source(
    'PostgreSQL documentation, DECLARE: cursors that scroll, and cursors WITH HOLD',
    'what is kept is bound to its caller and to the versions of its rules',
  ),
  rowSecurity: source(
    'PostgreSQL documentation, Row Security Policies: the setting row_security, and who is exempt',
    'no setting switches rules off',
  ),
  covertKeys: source(
    'PostgreSQL documentation, CREATE POLICY, Notes: keys and references tell of hidden rows',
    'constraints are not checked against hidden rows on behalf of a caller',
  ),
  customSettings: source(
    'PostgREST documentation, Transactions, and Supabase documentation, Row Level Security: claims in settings of a session',
    'rules do not read settings that a caller can change',
  ),
  pooledSettings: source(
    'PgBouncer documentation, Features: SET and prepared statements under transaction pooling',
    'settings of a session end with it, and reach no other session',
  ),
  logins: source(
    'PostgreSQL documentation, Client Authentication, and libpq: parameters of a connection',
    'who asks is proved by a credential, and no parameter of a login changes it',
  ),
  claimedRoles: source(
    'Hasura documentation, Authentication: a role that the request itself claims',
    'who asks is proved by a credential, and nothing in a request changes it',
  ),
  samples: source(
    'PostgreSQL documentation, SELECT: TABLESAMPLE takes its rows before WHERE',
    'samples of hidden rows are refused',
  ),
  systemColumns: source(
    'PostgreSQL documentation, System Columns: places and ages of rows',
    'columns of the system are not shown',
  ),
  introspection: source(
    'pg_graphql documentation, Security: introspection lists the whole schema; OWASP GraphQL Cheat Sheet',
    'introspection lists what the caller may see',
  ),
  graphqlIds: source(
    'OWASP GraphQL Cheat Sheet: access by IDs, through relations, and by batches',
    'each node is filtered, by whatever way it is reached',
  ),
  itemApis: source(
    'Directus documentation, Query Parameters and Access Control: filters, orders, counts and fields of relations in a path',
    'a parameter reads no field and no row that its caller may not see',
  ),
  agentTools: source(
    'Model Context Protocol specification, Security Best Practices: tools act with the rights of their user',
    'a tool shows what its caller may see, in results, schemas and errors',
  ),
  own: source('our own finding', 'an answer is a function of what the caller may see'),
} as const;
