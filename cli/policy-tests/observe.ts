import { randomUUID } from 'node:crypto';
import { emit, type GovernedPlan, QueryError } from 'osl-compiler';
import {
  createLimiter,
  effectiveAccess,
  type Identity,
  LIMIT_BUCKETS,
  NO_CIRCUMSTANCES,
  type PolicySnapshot,
} from '../../policy/index.js';
import { testIdentity } from '../../policy/reasons.js';
import { createPlanCache } from '../../src/ask/data/plan-cache.js';
import { type AnswerParts, ask, type DataQuestion } from '../../src/ask/index.js';
import { objectNamed, type Visibility, widestVisibility } from '../../src/model/graph/index.js';
import { type Service, withLimiter } from '../../src/service/service.js';
import { parseFields } from '../../src/surfaces/rest/bodies/json.js';
import { toQueryRequest } from '../../src/surfaces/rest/bodies/query.js';
import { JsonAnswer } from '../../src/surfaces/rest/json-answer.js';
import type { JsonRow, PolicyTest, TestCircumstances, TestQuestion } from './document.js';
import type { TestService } from './test-service.js';

export type TestOutcome =
  | {
      readonly kind: 'answer';
      readonly plan: GovernedPlan;
      readonly sql: string;
      readonly rows: readonly JsonRow[];
    }
  | { readonly kind: 'refusal'; readonly code: string; readonly message: string }
  | { readonly kind: 'visibility'; readonly sees: Visibility };

export async function observe(
  stand: Pick<TestService, 'service' | 'means'>,
  snapshot: PolicySnapshot,
  test: Pick<PolicyTest, 'chain' | 'roles' | 'from' | 'asked'>,
): Promise<TestOutcome> {
  const { service } = stand;
  const { claims } = test.from;
  const identity = testIdentity({ ...test, ...(claims !== undefined && { claims }) }, snapshot);
  if (test.asked.kind === 'object')
    return {
      kind: 'visibility',
      sees: visibilityOf(test.asked.name, test.from, identity, service, snapshot),
    };
  try {
    return await answered(withPolicy(stand, snapshot), identity, test.from, test.asked);
  } catch (error) {
    if (error instanceof QueryError) return { kind: 'refusal', code: error.code, message: error.message };
    throw error;
  }
}

const PLANS_BYTES = 1_048_576;
const UNLIMITED = Object.freeze(Object.fromEntries(LIMIT_BUCKETS.map((bucket) => [bucket, 1e9])));

/** The service with another policy and no rate limits, because tests send requests faster than callers do. */
function withPolicy(
  { service, means }: Pick<TestService, 'service' | 'means'>,
  snapshot: PolicySnapshot,
): AnswerParts {
  const model = service.model().underPolicy(snapshot);
  return {
    ...service,
    model: () => model,
    plans: createPlanCache(PLANS_BYTES),
    ...withLimiter(means, createLimiter({ limits: { ...snapshot.limits, ...UNLIMITED } })),
  };
}

async function answered(
  parts: AnswerParts,
  identity: Identity,
  { surface = 'rest', address, purpose }: TestCircumstances,
  asked: Exclude<TestQuestion, { kind: 'object' }>,
): Promise<TestOutcome> {
  const { body, parameters } = toQueryRequest(parseFields(Buffer.from(JSON.stringify(bodyOf(asked)))));
  const question: DataQuestion = {
    requestId: randomUUID(),
    surface,
    credentials: { kind: 'session', identity },
    origin: { address: address ?? null, purpose: purpose ?? null, emergency: null },
    body,
    parameterOids: [],
  };
  const encoding = new JsonAnswer();
  const answer = await ask(parts, question, {
    parameters,
    resultFormats: encoding.formats(),
    maxRows: 0,
    signal: null,
    sink: (plan, versions, redacted) => {
      encoding.begin({ requestId: question.requestId, plan, versions, redacted });
      return { write: (dataRows) => encoding.rows(dataRows) };
    },
  });
  encoding.end(answer, null);
  const { rows } = JSON.parse(encoding.take().toString('utf8')) as { rows: readonly JsonRow[] }; // just encoded above
  return { kind: 'answer', plan: answer.plan, sql: emit(answer.plan).sql, rows };
}

function bodyOf(asked: Exclude<TestQuestion, { kind: 'object' }>): object {
  switch (asked.kind) {
    case 'osql':
      return { osql: asked.text };
    case 'sql':
      return { sql: asked.text };
    case 'metrics':
      return asked.body;
  }
}

function visibilityOf(
  name: string,
  { surface = 'rest', address, purpose, at }: TestCircumstances,
  identity: Identity,
  service: Service,
  snapshot: PolicySnapshot,
): Visibility {
  const { catalog } = service.model().manifest;
  const { relation: named, column } = objectNamed(name);
  const relation = catalog.relations.get(named);
  if (relation === undefined) return 'nothing';
  const now = at === undefined ? Date.now() : Date.parse(at);
  const said = { address: address ?? null, purpose: purpose ?? null };
  const circumstances = { ...NO_CIRCUMSTANCES, now, surface, ...said };
  return widestVisibility(
    relation,
    column,
    catalog,
    effectiveAccess(identity, snapshot, catalog, circumstances),
  );
}
