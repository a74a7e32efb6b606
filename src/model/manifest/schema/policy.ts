import { closed, DRAFT, list, MODEL_RULE, NAME_RULE, named, TEXT } from './parts.js';

const SUBJECT_NAME = {
  type: 'string',
  pattern: '^[^\\s\\u0000-\\u001f]{1,256}$',
  description: 'The `sub` of a token, e.g. `user:maria` or `agent:scout`.',
} as const;

const SCALAR = { type: ['string', 'number', 'boolean'] } as const;

const attribute = {
  type: [...SCALAR.type, 'array', 'object'],
  items: SCALAR,
  properties: { any: { const: true } },
  required: ['any'],
  additionalProperties: false,
  description: 'A value (text, a number, true or false), a list of values, or `{any: true}`.',
} as const;

const subject = closed(
  {
    ceiling: list(NAME_RULE, 'Data roles that the subject can ever have, 256 at most.'),
    purposes: list(NAME_RULE, 'What the subject can ever ask for, of `purposes`.'),
    admin: list(NAME_RULE, 'Admin roles that the subject can ever have, e.g. TENANT_ADMIN.'),
    attributes: named(NAME_RULE, attribute, 'What `attribute(…)` in a row filter refers to.'),
  },
  ['ceiling'],
  'Who a token may speak for.',
);

const moment = {
  type: 'string',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,3})?)?(Z|[+-]\\d{2}:\\d{2})$',
} as const;

const timeOfDay = { type: 'string', pattern: '^([01]\\d|2[0-3]):[0-5]\\d$|^24:00$' } as const;

const when = closed(
  {
    hours: closed(
      { from: timeOfDay, to: timeOfDay },
      ['from', 'to'],
      'From one time of day until another, on the clock of `zone`; over midnight where the first is the later one.',
    ),
    days: {
      type: 'array',
      items: { enum: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] },
      minItems: 1,
      uniqueItems: true,
      description: 'Days on which `hours` begin.',
    },
    zone: { ...TEXT, description: 'A time zone of the IANA database, such as Europe/Berlin.' },
    surfaces: {
      type: 'array',
      items: { enum: ['rest', 'wire', 'mcp'] },
      minItems: 1,
      uniqueItems: true,
      description: 'Where the server took the request in. `osl mcp` asks through `rest`.',
    },
    networks: {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      description: "CIDRs of the peer's socket. No header is believed: behind a proxy the peer is the proxy.",
    },
    claims: named(
      TEXT,
      {
        type: ['string', 'number', 'boolean', 'array'],
        items: { type: ['string', 'number', 'boolean'] },
        minItems: 1,
        description: 'A value, or a list of which one will do.',
      },
      'Claims of the token, each of which has such a value.',
    ),
  },
  [],
  'Of the request all of this must hold.',
);
const amount = {
  type: 'integer',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
} as const;

/** What may be taken in one window. */
const QUOTA = {
  per: {
    enum: ['second', 'minute', 'hour', 'day'],
    description: 'The window; it begins with its first request.',
  },
  bucket: {
    enum: ['query', 'sample', 'schema', 'authoring', 'catalog'],
    description: 'Which requests. Default: query.',
  },
  requests: { ...amount, description: 'How many.' },
  rows: { ...amount, description: 'Rows of answers to questions.' },
  bytes: { ...amount, description: 'Their bytes, as the database sends them.' },
  seconds: { ...amount, maximum: 1_000_000_000, description: 'Seconds of a session of the database.' },
} as const;

function quotas<I>(items: I, description: string) {
  return { type: 'array', items, description } as const;
}

const grant = closed(
  {
    on: { ...MODEL_RULE, description: 'An entity or a bridge.' },
    columns: {
      type: ['string', 'array'],
      pattern: '^\\*$',
      items: MODEL_RULE,
      uniqueItems: true,
      description: 'A list of columns, or "*" (in quotes) for all of them, also those that come later.',
    },
    rows: {
      ...TEXT,
      description: 'A predicate: only these rows, with moments on the clock of UTC. Absent: all rows.',
    },
    unmask: list(NAME_RULE, 'Sensitivity labels shown in the clear.'),
    decode: {
      type: 'boolean',
      description: 'On a facet: passages may be sent to a language model or a reranker. Default: false.',
    },
    min_group_size: {
      type: 'integer',
      minimum: 2,
      maximum: 1_000_000,
      description: 'No row output: only aggregates over at least so many entities.',
    },
    metrics: list(
      MODEL_RULE,
      'Only these metrics, over `columns` to filter and group by. Needs `min_group_size`.',
    ),
    distinct: named(
      MODEL_RULE,
      { type: 'integer', minimum: 2, maximum: 1_000_000, description: 'How many values.' },
      'Beside `min_group_size`: how many values of each of these columns a group must have.',
    ),
    dominance: {
      type: 'integer',
      minimum: 1,
      maximum: 99,
      description:
        'Beside `min_group_size`: how many percent of a sum, average or deviation one row may contribute; figures of which one contributes more are NULL.',
    },
    starts: { ...moment, description: 'The grant counts from this moment on.' },
    ends: { ...moment, description: 'The grant counts until this moment, and not at it.' },
    when,
    break_glass: closed(
      {
        minutes: {
          type: 'integer',
          minimum: 1,
          maximum: 1_440,
          description: 'How long the grant counts after the glass was broken.',
        },
        per_day: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          description: 'How often a subject may break it in 24 hours.',
        },
      },
      ['minutes', 'per_day'],
      'The grant counts for who breaks the glass: states a reason, which is on record, and alarms.',
    ),
    for: list(NAME_RULE, 'The grant counts for requests with one of these `purposes`.'),
  },
  ['on', 'columns'],
  'Some columns and rows of one entity or bridge.',
);

const denial = closed(
  { on: MODEL_RULE, columns: list(MODEL_RULE, 'Absent: the whole relation.') },
  ['on'],
  'What members may not use, whatever other roles grant.',
);

const role = closed(
  {
    description: TEXT,
    grants: { type: 'array', items: grant, description: 'What members see; the union of it.' },
    deny: { type: 'array', items: denial, description: 'Beats every grant.' },
    max_cost: {
      type: 'number',
      exclusiveMinimum: 0,
      description:
        "What the database's planner may reckon for one question of a member; the least of a caller's roles holds. It reads statistics that hidden rows shape.",
    },
    limits: quotas(
      closed(
        {
          ...QUOTA,
          each: {
            enum: ['subject'],
            description: 'Each member has it for itself. Absent: all of them together.',
          },
        },
        ['per'],
        'One limit.',
      ),
      'What members may take.',
    ),
  },
  ['grants'],
  'A data role.',
);

const perSecond = {
  type: 'number',
  exclusiveMinimum: 0,
  description: 'Requests a second and subject.',
} as const;

const serviceAccount = closed(
  {
    subject: { ...SUBJECT_NAME, description: 'One of `subjects`: whose rights a session has.' },
    scram: {
      type: 'string',
      writeOnly: true,
      pattern:
        '^SCRAM-SHA-256\\$(409[6-9]|4[1-9]\\d\\d|[5-9]\\d{3}|\\d{5,7}):[A-Za-z0-9+/]+=*\\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$',
      description: 'The verifier of its password; `osl scram` makes it.',
    },
    acl_roles: list(NAME_RULE, "Data roles that a session claims. Absent: the subject's ceiling."),
  },
  ['subject', 'scram'],
  'A login of the wire with a password, for tools that cannot bring a token.',
);

const certificate = closed(
  {
    subject: { ...SUBJECT_NAME, description: 'One of `subjects`: who its holder is.' },
    acl_roles: list(NAME_RULE, "Data roles that it claims. Absent: the subject's ceiling."),
    dn: {
      ...TEXT,
      description:
        'Its subject as RFC 2253 writes it, as `openssl x509 -subject -nameopt RFC2253,-esc_msb` does.',
    },
    cn: { ...TEXT, description: 'The common name of its subject, where that has one.' },
    dns: { ...TEXT, description: 'A DNS name among its alternative names.' },
    uri: { ...TEXT, description: 'A URI among them, such as a SPIFFE ID.' },
    email: { ...TEXT, description: 'An address among them.' },
    issuer: {
      ...TEXT,
      description: 'Who signed it, as RFC 2253 writes it. Absent: any authority of OSL_TLS_CLIENT_CA.',
    },
  },
  ['subject'],
  'Whose client certificate stands for whom; all that is said must fit, and one rule alone.',
);

const CLAIM = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  description:
    'A claim by its name, or by a JSON pointer that begins with `/`, such as `/realm_access/roles`.',
} as const;

const attributeSource = {
  type: [...SCALAR.type, 'array', 'object'],
  items: SCALAR,
  properties: {
    any: { const: true },
    claim: CLAIM,
    among: list(SCALAR, 'Values that count; others do not.'),
  },
  additionalProperties: false,
  description:
    'A value, a list of values, `{any: true}`, or `{claim: …}` with the values that count (`among`).',
} as const;

const exchangeRule = closed(
  {
    name: { ...NAME_RULE, description: 'What the audit log calls it.' },
    issuer: { ...TEXT, description: 'An issuer of identity tokens, as the file of issuers names it.' },
    when: named(
      CLAIM,
      {
        type: ['string', 'boolean', 'array'],
        items: { type: 'string' },
        minItems: 1,
        description: 'A value, true or false, or a list of values of which it is or holds one.',
      } as const,
      'Claims that a token must have; all of them must hold.',
    ),
    subject: {
      ...TEXT,
      description:
        'Who it becomes: text with claims between braces, such as `user:{sub}`. An `email` counts where it is verified.',
    },
    ceiling: list(NAME_RULE, 'Data roles that such a subject can ever have, 256 at most.'),
    admin: list(NAME_RULE, 'Admin roles that it can ever have, where it asks for them.'),
    roles: closed(
      {
        claim: CLAIM,
        map: named(
          { type: 'string', minLength: 1 },
          { type: ['string', 'array'], items: NAME_RULE, description: 'A data role, or several.' } as const,
          'Data roles by the value of the claim.',
        ),
      },
      ['claim', 'map'],
      'Which data roles it brings. Absent: the whole ceiling.',
    ),
    attributes: named(
      NAME_RULE,
      attributeSource,
      'What `attribute(…)` in a row filter refers to. A claim that is not there leaves it missing.',
    ),
    purposes: list(NAME_RULE, 'What it can ever ask for, of `purposes`.'),
    claims: list(CLAIM, 'Claims that are taken over as they are, for conditions of grants.'),
    direct: {
      type: 'boolean',
      description: 'An access token is good as it is, without an exchange beforehand. Default: false.',
    },
  },
  ['name', 'issuer', 'subject', 'ceiling'],
  'How people and agents whom an issuer knows become subjects.',
);

const exchangeRules = {
  type: 'array',
  items: exchangeRule,
  description: 'Rules by which tokens of issuers become actor tokens; the first that takes one decides.',
} as const;

/** JSON Schema (draft 7) of a policy file. */
export const POLICY_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL policy',
  ...closed(
    {
      version: { const: 1, description: 'The version of this format: 1.' },
      tenant: { ...NAME_RULE, description: 'Tokens of another tenant are refused.' },
      subjects: named(SUBJECT_NAME, subject, 'Who may ask. A subject that is not here has no rights.'),
      roles: named(NAME_RULE, role, 'Data roles by name.'),
      masks: named(
        NAME_RULE,
        {
          enum: ['redact', 'null', 'hash', 'partial', 'year', 'deny'],
          description: 'How a masked cell is shown; write "null" in quotes.',
        },
        'The mask of each sensitivity label; a label that is not here is `deny`.',
      ),
      order: named(
        NAME_RULE,
        {
          enum: ['by_key'],
          description: 'Answers that read it have a total order, by key where the question leaves it open.',
        },
        'Entities and bridges whose hidden rows may not show in the order of an answer; it costs a sort.',
      ),
      limits: closed(
        {
          subject: quotas(closed(QUOTA, ['per'], 'One limit.'), 'Of each subject, beside those of a second.'),
          tenant: quotas(closed(QUOTA, ['per'], 'One limit.'), 'Of all subjects together.'),
          query: perSecond,
          sample: perSecond,
          schema: perSecond,
          authoring: perSecond,
          catalog: perSecond,
        },
        [],
        'Rate limits.',
      ),
      privacy_units: named(
        MODEL_RULE,
        { ...MODEL_RULE, description: 'A column of it. Rows without a value are in no figure.' },
        'By entity or bridge: the column that tells whose a row is; `min_group_size` counts those.',
      ),
      purposes: named(
        NAME_RULE,
        closed({ description: TEXT }, [], 'A purpose.'),
        'What data may be asked for. A token names them in the claim `purpose`, a request in `OSL-Purpose` or `SET osl.purpose`.',
      ),
      service_accounts: named(
        NAME_RULE,
        serviceAccount,
        'Logins of the wire that prove a password, by name.',
      ),
      certificates: named(
        NAME_RULE,
        certificate,
        'Client certificates that stand in for a token, by a name of your own.',
      ),
      exchange: exchangeRules,
    },
    ['version', 'tenant', 'subjects', 'roles', 'masks'],
    'Who may see what.',
  ),
} as const;
