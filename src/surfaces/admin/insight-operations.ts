import { MOST_ROWS, MOST_SUBJECTS } from '../../ask/why/matrix.js';
import { SIGHTS } from '../../model/graph/index.js';
import { BEARER, json, operation } from '../rest/openapi/operations.js';
import { ANY_CALL, refusals } from '../rest/openapi/refusals.js';
import { count, flag, list, object, oneOf, orNull, type Shape, text, textOrNull } from '../rest/shape.js';
import { DECISIONS, KINDS, OUTCOMES, SURFACES } from './audit-filter.js';

const REQUEST_ID = text('The call in the audit log.');
const VERSIONS = object({ manifest: text(), policy: text() });
const NUMBER: Shape<number> = { type: 'number' };
const ANYTHING: Shape = { type: 'object' };
const SEES = oneOf(...SIGHTS);
const NEXT = textOrNull('`from` of the next page; null at the end.');

const RECORD: Shape = {
  type: 'object',
  description: 'A record as it stands in the log.',
  properties: {
    ts: text(),
    kind: oneOf(...KINDS),
    request_id: text(),
    subject: textOrNull(),
    chain: list(text()),
    surface: text(),
    action: text(),
    form: textOrNull(),
    objects: list(text()),
    decision: orNull(oneOf(...DECISIONS)),
    code: textOrNull(),
    outcome: orNull(oneOf(...OUTCOMES)),
    rows: orNull(count()),
    duration_us: orNull(count()),
    writer: text(),
    epoch: count(),
    seq: count(),
  },
  required: ['ts', 'kind', 'request_id', 'action', 'writer', 'seq'],
};
const RECORDS = { records: list(RECORD), next: NEXT };

const JOB = {
  state: oneOf('none', 'never', 'running', 'done', 'failed'),
  began_at: textOrNull(),
  ended_at: textOrNull(),
  by: textOrNull('Who began it.'),
  progress: orNull(ANYTHING),
  result: orNull(ANYTHING),
  why: textOrNull('Why it failed, or why there is nothing to do.'),
};

const OFFER = object({
  declared: flag(),
  sees: SEES,
  roles: list(object({ role: text(), sees: SEES, also: object({ count: count(), first: list(text()) }) })),
  grant: orNull(ANYTHING),
});

type Parameters = Readonly<Record<string, Shape>>;
type More = 'auditUnreadable' | 'notFound';

function asked(
  operationId: string,
  summary: string,
  members: Readonly<Record<string, Shape>>,
  parameters: Parameters = {},
  more: readonly More[] = [],
) {
  return operation({
    operationId,
    summary,
    tags: ['admin'],
    security: BEARER,
    ...(Object.keys(parameters).length > 0 && { querystring: { type: 'object', properties: parameters } }),
    response: {
      200: json(object({ request_id: REQUEST_ID, ...members }), summary),
      ...refusals(...ANY_CALL, 'operatorsOnly', ...more),
    },
  });
}

const FROM = text('`next` of the page before.');

export const INSIGHT_OPERATIONS = Object.freeze({
  matrix: asked(
    'matrix',
    'How each subject of the policy sees each column',
    {
      subjects: list(list(text()), 'Chains, root first; of most subjects they alone.'),
      next_subject: textOrNull('`after` of the next page; null at the end.'),
      subject_count: count('Subjects whose name matches.'),
      rows: list(object({ object: text(), column: text(), label: textOrNull(), sees: list(SEES) })),
      row_count: count('Columns whose name matches.'),
      versions: VERSIONS,
    },
    {
      subject: text('A part of its name.'),
      object: text('A part of the full name of a column.'),
      sees: text('Subjects alone who see one of the rows in one of these ways, with commas.'),
      after: text('Subjects after this one.'),
      subjects: text(`How many, ${MOST_SUBJECTS} at most.`),
      from: text('The first row, from 0.'),
      rows: text(`How many, ${MOST_ROWS} at most.`),
      chain: text('Somebody more: subjects with commas, root first.'),
    },
  ),
  accessRequests: asked(
    'accessRequests',
    'Who asked for access to what, and what could be granted now',
    {
      requests: list(
        object({
          request_id: text(),
          at: text(),
          subject: textOrNull(),
          chain: list(text()),
          object: textOrNull('Null: nothing of the name that was asked for.'),
          offer: orNull(OFFER),
        }),
      ),
      next: NEXT,
    },
    { from: FROM },
    ['auditUnreadable'],
  ),
  auditRecords: asked(
    'auditRecords',
    'Records of the audit log, the newest first',
    RECORDS,
    {
      subject: text('Who stands in it, or in its chain.'),
      object: text('What was touched: `osl.entities.order`, or `order`.'),
      name: text('A name that was asked for and declared nowhere.'),
      since: text('A moment: records from here …'),
      until: text('… to before here.'),
      kind: oneOf(...KINDS),
      action: text(),
      surface: oneOf(...SURFACES),
      decision: oneOf(...DECISIONS),
      outcome: oneOf(...OUTCOMES),
      code: text(),
      request: text('The id of a request.'),
      from: FROM,
      most: text('How many, 50 unless told, 200 at most.'),
    },
    ['auditUnreadable'],
  ),
  auditRequest: asked(
    'auditRequest',
    'All records of one request, in their order',
    RECORDS,
    { near: text('A moment: the records of two days around it alone, which is quicker.') },
    ['auditUnreadable', 'notFound'],
  ),
  auditProofs: asked(
    'auditProofs',
    'Proofs of the records of one request, as `osl audit prove` writes them',
    {
      proofs: list(
        object({ seq: count(), text: text(), verifier_key: text('The key that lies beside the log.') }),
        'Of those that the newest signed checkpoint covers.',
      ),
    },
    {},
    ['auditUnreadable', 'notFound'],
  ),
  verification: asked('auditVerification', 'How the last verification of the audit log stands', JOB),
  verify: asked('verifyAudit', 'Verify the audit log, unless that is being done', JOB),
  policyTests: asked('policyTests', 'What the tests of the policy came to', JOB),
  testPolicy: asked('testPolicy', 'Run the tests that lie beside the policy, unless they run', JOB),
  figures: asked('figures', 'Figures of all processes since the start, as `/metrics` counts them', {
    latency: list(
      object({
        form: text(),
        surface: text(),
        count: count(),
        sum: NUMBER,
        buckets: list(object({ le: orNull(NUMBER), count: count() })),
      }),
      'Seconds of answered requests.',
    ),
    stages: list(object({ stage: text(), count: count(), sum: NUMBER })),
    requests: list(object({ decision: text(), outcome: text(), count: count() })),
    refusals: list(object({ code: text(), count: count() })),
    lineage: list(
      object({
        endpoint: text(),
        pending: count(),
        dead: count(),
        delivered: count(),
        failed: count(),
        dropped: count(),
        disabled: flag(),
      }),
    ),
    lineage_lag: orNull(count()),
    workers: orNull(object({ wanted: count(), serving: count(), replaced: count() })),
    wire_sessions: count(),
  }),
  limits: asked(
    'limits',
    'The limits of the policy, and how much of them is used',
    {
      per_second: list(object({ bucket: text(), most: count() })),
      quotas: list(
        object({
          bucket: text(),
          unit: oneOf('requests', 'rows', 'bytes', 'ms'),
          most: count(),
          window_seconds: NUMBER,
          role: textOrNull(),
          each: flag('Each subject has it for itself.'),
          used: orNull(count()),
          ends_in_seconds: orNull(NUMBER),
        }),
      ),
      subject: textOrNull(),
    },
    { subject: text('Whose own limits are told too.') },
  ),
  freshness: asked('freshness', 'How old indexes and rollups are, and which versions serve', {
    indexes: list(object({ facet: text(), indexed_at: textOrNull() })),
    rollups: orNull(
      list(
        object({
          rollup: text(),
          entity: text(),
          state: oneOf('ready', 'not built', 'changed', 'old'),
          built_at: textOrNull(),
          rows: orNull(count()),
          max_age_seconds: NUMBER,
        }),
      ),
    ),
    published: orNull(object({ number: count(), id: text(), at: text() })),
    activation: orNull(count()),
    versions: VERSIONS,
  }),
});
