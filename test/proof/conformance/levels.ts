import { CONTRACT, type RuleId } from './contract.js';
import type { State } from './state.js';
import { stateOf } from './states.js';

/** Groups of rules. A level is declared only where every rule of its group that can be tested is proved. */
export const LEVELS = [
  'service',
  'discovery',
  'query',
  'retrieval',
  'traversal',
  'metrics',
  'sample',
  'authoring',
  'mcp',
  'authentication',
  'audit',
  'errors',
  'limits',
  'versioning',
  'lineage',
  'columnar',
] as const;
export type Level = (typeof LEVELS)[number];

/** The level of the rules of each part of the contract. */
const OF_PART: Readonly<Record<string, Level>> = {
  intro: 'service',
  service: 'service',
  graph: 'discovery',
  passage: 'retrieval',
  resource: 'discovery',
  states: 'discovery',
  endpoint: 'service',
  query: 'query',
  osql: 'query',
  sample: 'sample',
  map: 'discovery',
  schema: 'discovery',
  other: 'service',
  mcp: 'mcp',
  auth: 'authentication',
  events: 'audit',
  errors: 'errors',
  limits: 'limits',
  versioning: 'versioning',
};

/** Rules that belong to another level than their part. */
const ELSEWHERE: Readonly<Partial<Record<RuleId, Level>>> = {
  'service.4.4': 'lineage',
  'service.4.5': 'columnar',
  'service.5': 'audit',
  'service.6.2': 'query',
  'graph.map.nodes': 'authoring',
  'graph.node.kind': 'authoring',
  'states.3': 'authoring',
  'endpoint.domain-map': 'discovery',
  'endpoint.schema': 'discovery',
  'endpoint.schema-resolve': 'discovery',
  'endpoint.query': 'query',
  'endpoint.sample': 'sample',
  'endpoint.suggest': 'authoring',
  'endpoint.validate': 'authoring',
  'endpoint.objects': 'authoring',
  'endpoint.candidates': 'authoring',
  'query.metrics': 'metrics',
  'resource.8': 'metrics',
  'osql.3.retrieve': 'retrieval',
  'osql.3.joint': 'retrieval',
  'osql.3.cross-modal-equijoin': 'retrieval',
  'osql.3.2': 'retrieval',
  'osql.3.3': 'retrieval',
  'osql.3.4': 'retrieval',
  'osql.3.5': 'retrieval',
  'osql.3.6': 'retrieval',
  'osql.3.7': 'retrieval',
  'osql.3.8': 'retrieval',
  'osql.3.9': 'retrieval',
  'osql.3.19': 'retrieval',
  'osql.3.20': 'retrieval',
  'osql.3.21': 'retrieval',
  'osql.3.encoder': 'retrieval',
  'osql.3.decoder': 'retrieval',
  'osql.3.traverse': 'traversal',
  'osql.3.10': 'traversal',
  'osql.3.11': 'traversal',
  'osql.3.12': 'traversal',
  'osql.3.13': 'traversal',
  'osql.3.14': 'traversal',
  'events.2': 'lineage',
};

// Object.keys only says string.
export const RULES = Object.keys(CONTRACT) as readonly RuleId[];

export function levelOf(id: RuleId): Level {
  const level = ELSEWHERE[id] ?? OF_PART[id.split('.')[0] ?? ''];
  if (level === undefined) throw new Error(`${id} has no level`);
  return level;
}

/** The levels that are met, in the order of `LEVELS`. One without a rule that can be tested is none. */
export function metLevels(): readonly Level[] {
  return LEVELS.filter((level) => {
    const states = RULES.filter((id) => levelOf(id) === level).map((id) => stateOf(id));
    return states.some(isProved) && states.every((s) => isProved(s) || s.kind === 'untestable');
  });
}

function isProved(state: State): boolean {
  return state.kind === 'checked' || state.kind === 'same' || state.kind === 'tested';
}
