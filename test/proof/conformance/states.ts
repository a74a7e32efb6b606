import { ACCESS_CHECKS } from './checks/access.js';
import type { Check } from './checks/check.js';
import { FORM_CHECKS } from './checks/forms.js';
import { GRAPH_CHECKS } from './checks/graph.js';
import { LIMIT_CHECKS } from './checks/limits.js';
import { MCP_CHECKS } from './checks/mcp.js';
import { QUERY_CHECKS } from './checks/query.js';
import { TOKEN_CHECKS } from './checks/tokens.js';
import type { RuleId } from './contract.js';
import { checked, type State, sameAs, tested, unmet, untestable } from './state.js';

const CHECKED = {
  ...GRAPH_CHECKS,
  ...QUERY_CHECKS,
  ...FORM_CHECKS,
  ...ACCESS_CHECKS,
  ...TOKEN_CHECKS,
  ...LIMIT_CHECKS,
  ...MCP_CHECKS,
};

/** Checks by the rule that they show. */
export const CHECKS: ReadonlyMap<string, Check> = new Map(Object.entries(CHECKED));

const ABOUT_ITSELF = untestable('says how the contract is to be read');
const HEADING = untestable('a heading');
const NOT_SHOWN = untestable('the contract leaves it open');
const SUPERSEDED = untestable('the contract itself says that it is superseded');
const FUTURE = untestable('about a later version of the API');
const NOT_EVERY_REQUEST = unmet(
  'not every request has an entry of its own: those for /health, /ready, /metrics, /openapi.json and the metadata of /mcp are counted in one entry a minute and path, those without a valid token in one entry a second and address once beyond its limit (decision 0008); the files of the console, preflight requests (CORS) of allowed origins, and empty statements on the wire have none; what the entries of all others hold, surface by surface and error by error, is tried by `test/proof/records/failures.test.ts`',
);

const CONFIGURED = tested(
  'a started `osl serve`',
  'service/operations/reload',
  ['iss and aud are those of the settings, as the contract asks'],
  ['iss and aud are those of the settings, as the contract asks'],
);
const FOR_ADMINS = 'is for admins, whose whole chain is, and every call is recorded';

/** All rules without a check of their own. */
const OTHERS: Readonly<Record<Exclude<RuleId, keyof typeof CHECKED>, State>> = {
  'intro.1': ABOUT_ITSELF,
  'intro.2': ABOUT_ITSELF,
  'intro.3': ABOUT_ITSELF,
  'service.1': unmet(
    'every other way to read takes the same steps, but is another endpoint: the Postgres port, `/osl/sample`, which shows rows, and `/osl/subscribe`, which runs a query again and again and tells that its answer has changed',
  ),
  'service.1.2': sameAs('osql.3'),
  'service.1.3': ABOUT_ITSELF,
  'service.3': untestable('says what is no part of the contract'),
  'service.3.3': untestable("about a consumer's model, which is not part of the service"),
  'service.4': sameAs('service.0.2'),
  'service.4.2': sameAs('mcp.4'),
  'service.4.3': tested(
    'the command `osl`',
    'tools/cli/help',
    ['the help of every command is the golden text, and shows an example'],
    [],
  ),
  'service.4.4': tested(
    'REST',
    'service/lineage/events',
    ['all runs are counted, those of others and of other rights apart'],
    ['what reads nothing is no run: refusals, explanations, questions about the graph'],
  ),
  'service.5': NOT_EVERY_REQUEST,
  'service.6.2': sameAs('osql.3'),

  'graph.1': HEADING,
  'graph.5': HEADING,
  'graph.8': HEADING,

  'resource.1': NOT_SHOWN,
  'resource.2': NOT_SHOWN,
  'resource.3': NOT_SHOWN,
  'states.1': sameAs('graph.node.state'),
  'states.2': NOT_SHOWN,
  'states.3': tested(
    'REST',
    'surfaces/rest/objects',
    ['goes through draft, validated and published'],
    ['is what could not be served, with every fault'],
  ),
  'states.4': NOT_SHOWN,

  'endpoint.query': sameAs('query.osql'),
  'endpoint.sample': sameAs('sample.1'),
  'endpoint.domain-map': sameAs('map.2'),
  'endpoint.schema': sameAs('schema.1'),
  'endpoint.suggest': tested(
    'REST',
    'surfaces/rest/authoring',
    ['a draft compiles, and labels nothing'],
    ['what cannot be drafted is told', FOR_ADMINS],
  ),
  'endpoint.validate': tested(
    'REST',
    'surfaces/rest/authoring',
    ['who gains, who loses, and who sees something else'],
    ['what would not compile is told with its place', FOR_ADMINS],
  ),
  'endpoint.objects': tested(
    'REST',
    'surfaces/rest/objects',
    ['is a new version that serves at once, and says who gains'],
    [FOR_ADMINS, 'is any malformed body'],
  ),
  'endpoint.candidates': tested(
    'REST',
    'surfaces/rest/authoring',
    ['candidates are what nothing rests on'],
    [FOR_ADMINS],
  ),

  'query.5': NOT_SHOWN,
  'query.6': NOT_SHOWN,

  'osql.3.21': sameAs('osql.3.encoder'),

  'sample.3': NOT_SHOWN,
  'sample.4': unmet(
    'data roles come from `acl_roles`, `roles` decide about admin operations only: the contract contradicts itself, and decision 0007 follows its Authentication part',
  ),
  'map.1': untestable('a GET; there is nothing to send'),
  'schema.4': NOT_SHOWN,
  'other.1': NOT_SHOWN,
  'other.2': NOT_SHOWN,
  'other.3': NOT_SHOWN,
  'other.4': sameAs('endpoint.conformance'),
  'other.5': sameAs('endpoint.health'),
  'other.6': NOT_SHOWN,

  'mcp.3': SUPERSEDED,

  'auth.1.3': sameAs('auth.1.2'),
  'auth.3': HEADING,
  'auth.3.iss': CONFIGURED,
  'auth.5.3': CONFIGURED,
  'auth.6': SUPERSEDED,
  'auth.6.2': ABOUT_ITSELF,
  'auth.7': sameAs('map.3'),

  'events.1': NOT_EVERY_REQUEST,
  'events.2': tested(
    'REST',
    'service/lineage/events',
    ['every request verifies under the new secret and under the old one'],
    ['no event holds a literal, an alias, a row or a name that is not declared'],
  ),
  'events.2.2': NOT_SHOWN,
  'events.3': NOT_SHOWN,

  'errors.1': NOT_SHOWN,
  'errors.E0513': sameAs('query.2'),
  'errors.E0514': sameAs('osql.3.18'),
  'errors.E0246': sameAs('query.sql'),
  'errors.E3001': sameAs('auth.2.3'),
  'errors.403-E0512': sameAs('query.sql'),
  'errors.E2001': tested(
    'a started `osl serve`',
    'service/operations/reload',
    ['the last valid policy stays in force for OSL_POLICY_KEEP_SECONDS and no longer'],
    ['without a valid policy every surface answers 503 E2001 until a reload brings one'],
  ),
  'errors.E0521': sameAs('osql.3.decoder'),
  'errors.429': sameAs('limits.query'),

  'limits.sample-limit-default': sameAs('sample.limit'),
  'limits.exceeding': sameAs('limits.query'),
  'limits.traverse': sameAs('osql.3.11'),
  'limits.retrieve-top_k': sameAs('osql.3.4'),
  'limits.1': untestable('about the reference engine; here limits are enforced'),
  'limits.2': untestable('about the reference engine; here limits are enforced'),
  'limits.4': NOT_SHOWN,

  'versioning.2': FUTURE,
  'versioning.2.2': FUTURE,
  'versioning.3': tested('REST', 'surfaces/rest/versioning', ['answers may get members'], []),
  'versioning.3.2': tested('REST', 'surfaces/rest/client', ['passes over members that it does not know'], []),
  'versioning.4': sameAs('auth.3.version'),
  'versioning.4.2': sameAs('versioning.1'),
};

const DESCRIBES = 'says what an answer has';
const EVERY_TIME = 'says that answers are the same each time';

/** Why a proved rule has no negative case. */
export const NO_NEGATIVE: Readonly<Partial<Record<RuleId, string>>> = {
  'service.4.3': 'names a surface',
  'graph.2': DESCRIBES,
  'graph.node.id': DESCRIBES,
  'graph.node.name': DESCRIBES,
  'graph.node.plane': DESCRIBES,
  'graph.node.state': DESCRIBES,
  'graph.node.composition': DESCRIBES,
  'graph.node.description': DESCRIBES,
  'graph.node.attributes': DESCRIBES,
  'graph.node.meta': DESCRIBES,
  'graph.6': DESCRIBES,
  'graph.edge.id': DESCRIBES,
  'graph.edge.source': DESCRIBES,
  'graph.edge.target': DESCRIBES,
  'graph.edge.kind': DESCRIBES,
  'graph.edge.label': DESCRIBES,
  'graph.edge.declared': DESCRIBES,
  'graph.edge.source_attr': DESCRIBES,
  'graph.edge.target_attr': DESCRIBES,
  'graph.9': EVERY_TIME,
  'passage.score': DESCRIBES,
  'passage.entity_key': DESCRIBES,
  'passage.cite': DESCRIBES,
  'resource.5': DESCRIBES,
  'resource.6': DESCRIBES,
  'resource.7': DESCRIBES,
  'states.1': DESCRIBES,
  'map.2': DESCRIBES,
  'endpoint.domain-map': DESCRIBES,
  'osql.3.9': DESCRIBES,
  'osql.3.12': DESCRIBES,
  'osql.3.13': EVERY_TIME,
  'versioning.3': 'allows something, and forbids nothing',
  'versioning.3.2': 'says what clients do',
};

const TOO_MANY = 'beyond the limit of its address, a request with an invalid token gets 429';

const EXTENDED =
  'set operations, subqueries, derived tables and more are extensions, on unless the manifest switches them off by name (decision 0113); the check tries both';

/** What a reader of the page should know beside the state. */
export const NOTES: Readonly<Partial<Record<RuleId, string>>> = {
  'query.metrics':
    'the contract calls it unresolvable at present; here it is answered, and what cannot be is 422 E1001',
  'osql.3': EXTENDED,
  'osql.3.structured': EXTENDED,
  'osql.3.15':
    'so for whatever pairs rows; INTERSECT, EXCEPT and values computed of a subquery compare columns that are no keys, too, as long as `features.set_operations` and `features.subqueries` are on, which they are unless the manifest says no (decisions 0112 and 0113; `osql.3` tries both)',
  'osql.3.18':
    'in `osql`; the body `sql` joins on anything, and `features.joins: any` of a manifest allows it here',
  'osql.3.21': 'operators over the texts of entities are an extension, which the manifest can switch off',
  'auth.3.alg':
    'once keys of an issuer are configured, HS256 is refused (401 E3001) unless `OSL_LOCAL_TOKENS=on`, as here; ES256 and EdDSA by keys of an issuer are accepted as well',
  'auth.2':
    'at `/mcp` it is 401 with the same code, as MCP asks; beyond the limit of its address a caller without a token gets 429',
  'auth.2.2': TOO_MANY,
  'auth.2.3': TOO_MANY,
};

/** What is known of every rule. */
export function stateOf(id: RuleId): State {
  return CHECKS.has(id) ? checked : OTHERS[id as keyof typeof OTHERS]; // what has no check is in OTHERS: see its type
}
