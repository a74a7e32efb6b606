import {
  choice,
  closed,
  DRAFT,
  flag,
  integer,
  list,
  MODEL_RULE,
  modelName,
  NAME_RULE,
  named,
  ruledName,
  TEXT,
  text,
} from './json-schema.js';

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
    ceiling: list(NAME_RULE, 'Data roles that the subject may use, at most 256.'),
    purposes: list(NAME_RULE, 'Purposes, from `purposes`, that the subject may state.'),
    admin: list(NAME_RULE, 'Admin roles that the subject may use, such as TENANT_ADMIN.'),
    attributes: named(NAME_RULE, attribute, 'Values of `attribute(…)` in row filters.'),
  },
  ['ceiling'],
  'A user, service or agent that tokens may name.',
);

const tableAttribute = closed(
  {
    on: modelName('Entity that is read, without regard to grants.'),
    column: modelName(
      'Column with the values; NULL is not a value. Default: the value is true if there is a row.',
    ),
    rows: text(
      "SQL predicate that selects the rows of a subject; `attribute('name')` is another attribute of the subject.",
    ),
    max_age: integer(
      0,
      3_600,
      'Seconds for which values may be used again. Default: 0, they are read for each request.',
    ),
  },
  ['on', 'rows'],
  'An attribute read from an entity.',
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
      'Time of day in `zone`, from `from` until `to`; across midnight if `from` is later.',
    ),
    days: {
      type: 'array',
      items: { enum: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] },
      minItems: 1,
      uniqueItems: true,
      description: 'Weekdays on which `hours` begin.',
    },
    zone: text('IANA time zone, such as Europe/Berlin.'),
    surfaces: {
      type: 'array',
      items: { enum: ['rest', 'wire', 'mcp'] },
      minItems: 1,
      uniqueItems: true,
      description: 'Surfaces that received the request; `wire` is the Postgres port. `osl mcp` uses `rest`.',
    },
    networks: {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      description:
        "Networks (CIDR) of the connection's remote address. Headers are ignored: behind a proxy it is the proxy's address.",
    },
    claims: named(
      TEXT,
      {
        type: ['string', 'number', 'boolean', 'array'],
        items: { type: ['string', 'number', 'boolean'] },
        minItems: 1,
        description: 'A value, or a list of accepted values.',
      },
      'Required token claims with their values; all must match.',
    ),
  },
  [],
  'Conditions on the request; all must hold.',
);
const amount = {
  type: 'integer',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
} as const;

const QUOTA = {
  per: choice(
    ['second', 'minute', 'hour', 'day', 'task'],
    'Length of the window, which begins with its first request; or one task, which is counted for a day.',
  ),
  name: ruledName('Name in refusals and for operators. Default: the place in the policy.'),
  bucket: choice(['query', 'sample', 'schema', 'authoring', 'catalog'], 'Kind of requests. Default: query.'),
  requests: { ...amount, description: 'Number of requests.' },
  rows: { ...amount, description: 'Rows returned by queries.' },
  bytes: { ...amount, description: 'Bytes of these rows as the database sends them.' },
  seconds: {
    ...amount,
    maximum: 1_000_000_000,
    description: 'Seconds for which queries hold a database session.',
  },
  cost: {
    ...amount,
    description: "Sum of the cost that the database's planner estimates for each query, as for `max_cost`.",
  },
  tokens: {
    ...amount,
    description: 'Tokens of the language models, rerankers and embedding models that queries use.',
  },
  entities: {
    ...amount,
    maximum: 100_000,
    description:
      'Number of different entities that the rows of answers show. An answer that would show more stops with an error, and a query of which it is not known what its rows show is refused.',
  },
  of: {
    type: 'array',
    items: MODEL_RULE,
    minItems: 1,
    uniqueItems: true,
    description: 'With `entities`: names of those that are counted.',
  },
  labels: {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    uniqueItems: true,
    description: 'With `entities`: counts those that have a column with one of these sensitivity labels.',
  },
} as const;

function quotas<I>(items: I, description: string) {
  return { type: 'array', items, description } as const;
}

const grant = closed(
  {
    on: modelName('Entity, bridge or facet.'),
    columns: {
      type: ['string', 'array'],
      pattern: '^\\*$',
      items: MODEL_RULE,
      uniqueItems: true,
      description: 'List of columns, or "*" (in quotes) for all, including columns added later.',
    },
    rows: text('SQL predicate that selects the visible rows; times are UTC. Default: all rows.'),
    unmask: list(NAME_RULE, 'Sensitivity labels that are shown unmasked.'),
    decode: flag('On a facet: passages may be sent to a language model or a reranker. Default: false.'),
    min_group_size: integer(2, 1_000_000, 'Show no rows, only aggregates over at least this many entities.'),
    metrics: list(
      MODEL_RULE,
      'Allow only these metrics; `columns` are then for filters and GROUP BY. Needs `min_group_size`.',
    ),
    distinct: named(
      MODEL_RULE,
      integer(2, 1_000_000, 'Minimum number of distinct values.'),
      'With `min_group_size`: minimum number of distinct values that a group must have in each of these columns.',
    ),
    dominance: integer(
      1,
      99,
      'With `min_group_size`: the largest share, in percent, that one row may have in a sum, average or deviation; an aggregate with a larger share is NULL.',
    ),
    overlap: closed(
      {
        mode: choice(
          ['refuse'],
          'Queries whose answers, together with earlier ones, would show figures of fewer entities are refused.',
        ),
        with: text(
          'Name of the group of subjects whose answers are compared. Default: each subject by itself.',
        ),
        days: integer(1, 365, 'Days for which answers are compared, from the first one. Default: 1.'),
      },
      ['mode'],
      'With `min_group_size`: compare each answer with earlier ones.',
    ),
    starts: { ...moment, description: 'Start of validity.' },
    ends: { ...moment, description: 'End of validity (exclusive).' },
    when,
    break_glass: closed(
      {
        minutes: integer(1, 1_440, 'Minutes for which the grant is active after the reason was given.'),
        per_day: integer(1, 100, 'Times that a subject may activate it in 24 hours.'),
      },
      ['minutes', 'per_day'],
      'Emergency access: the grant is active only after the caller states a reason, which is recorded and raises an alarm.',
    ),
    approval: closed(
      {
        by: { ...NAME_RULE, description: 'Data or admin role of the persons who may approve.' },
        minutes: integer(1, 43_200, 'Longest duration of one approval, in minutes.'),
      },
      ['by', 'minutes'],
      'Approval: the grant is active only while a person with the role `by` has approved it for the caller.',
    ),
    for: list(NAME_RULE, 'The grant applies only to requests with one of these `purposes`.'),
  },
  ['on', 'columns'],
  'Visible columns and rows of one entity, bridge or facet.',
);

const denial = closed(
  { on: MODEL_RULE, columns: list(MODEL_RULE, 'Default: the whole relation.') },
  ['on'],
  'Columns or relations that members cannot use, whatever other roles grant.',
);

const role = closed(
  {
    description: TEXT,
    grants: { type: 'array', items: grant, description: 'Grants of the role; members see their union.' },
    deny: {
      type: 'array',
      items: denial,
      description: 'Columns or relations denied to members; overrides every grant.',
    },
    max_cost: {
      type: 'number',
      exclusiveMinimum: 0,
      description:
        "Maximum cost estimate of the database's planner for one query of a member; the lowest of a caller's roles applies. The estimate depends on statistics that include hidden rows.",
    },
    limits: quotas(
      closed(
        {
          ...QUOTA,
          each: choice(
            ['subject', 'chain'],
            'Each member, or each chain of subjects, is counted separately. Default: all members together.',
          ),
        },
        ['per'],
        'One limit.',
      ),
      'Limits for members.',
    ),
  },
  ['grants'],
  'A data role.',
);

const perSecond = {
  type: 'number',
  exclusiveMinimum: 0,
  description: 'Requests per second of each subject.',
} as const;

const serviceAccount = closed(
  {
    subject: { ...SUBJECT_NAME, description: 'One of `subjects`; sessions have its rights.' },
    scram: {
      type: 'string',
      writeOnly: true,
      pattern:
        '^SCRAM-SHA-256\\$(409[6-9]|4[1-9]\\d\\d|[5-9]\\d{3}|\\d{5,7}):[A-Za-z0-9+/]+=*\\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$',
      description: 'SCRAM verifier of the password; create it with `osl scram`.',
    },
    acl_roles: list(NAME_RULE, "Data roles of the sessions. Default: the subject's ceiling."),
  },
  ['subject', 'scram'],
  'A login with a password on the Postgres port, for tools that cannot send a token.',
);

const certificate = closed(
  {
    subject: {
      ...SUBJECT_NAME,
      description: 'One of `subjects`; the holder of the certificate has its rights.',
    },
    acl_roles: list(NAME_RULE, "Data roles of the holder. Default: the subject's ceiling."),
    dn: text(
      "The certificate's subject in RFC 2253 notation, as `openssl x509 -subject -nameopt RFC2253,-esc_msb` prints it.",
    ),
    cn: text('Common name of its subject.'),
    dns: text('A DNS subject alternative name.'),
    uri: text('A URI subject alternative name, such as a SPIFFE ID.'),
    email: text('An e-mail subject alternative name.'),
    issuer: text('Its issuer in RFC 2253 notation. Default: any authority in OSL_TLS_CLIENT_CA.'),
  },
  ['subject'],
  'Maps client certificates to a subject. All keys of a rule must match, and exactly one rule.',
);

const CLAIM = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  description: 'Name of a claim, or a JSON pointer that begins with `/`, such as `/realm_access/roles`.',
} as const;

const attributeSource = {
  type: [...SCALAR.type, 'array', 'object'],
  items: SCALAR,
  properties: {
    any: { const: true },
    claim: CLAIM,
    among: list(SCALAR, 'Accepted values; others are ignored.'),
  },
  additionalProperties: false,
  description:
    'A value, a list of values, `{any: true}`, or `{claim: …}` with the accepted values (`among`).',
} as const;

const exchangeRule = closed(
  {
    name: ruledName('Name of the rule in the audit log.'),
    issuer: text('Issuer of identity tokens, as named in the issuers file.'),
    when: named(
      CLAIM,
      {
        type: ['string', 'boolean', 'array'],
        items: { type: 'string' },
        minItems: 1,
        description:
          'A value, true or false, or a list of values; the claim must equal or contain one of them.',
      } as const,
      'Claims that a token must have; all must match.',
    ),
    subject: text(
      'Resulting subject: text with claims in braces, such as `user:{sub}`. `email` is used only if it is verified.',
    ),
    ceiling: list(NAME_RULE, 'Data roles that such a subject may use, at most 256.'),
    admin: list(NAME_RULE, 'Admin roles that it may use if it requests them.'),
    roles: closed(
      {
        claim: CLAIM,
        map: named(
          { type: 'string', minLength: 1 },
          { type: ['string', 'array'], items: NAME_RULE, description: 'A data role, or several.' } as const,
          'Data roles for each value of the claim.',
        ),
      },
      ['claim', 'map'],
      'Data roles from a claim. Default: the whole ceiling.',
    ),
    attributes: named(
      NAME_RULE,
      attributeSource,
      'Values of `attribute(…)` in row filters. If the claim is missing, so is the attribute.',
    ),
    purposes: list(NAME_RULE, 'Purposes, from `purposes`, that it may state.'),
    claims: list(CLAIM, 'Claims copied unchanged, for use in conditions of grants.'),
    direct: flag('Accept an access token directly, without a token exchange. Default: false.'),
  },
  ['name', 'issuer', 'subject', 'ceiling'],
  'Maps people and agents known to an issuer to subjects.',
);

const exchangeRules = {
  type: 'array',
  items: exchangeRule,
  description: 'Rules that turn tokens of issuers into actor tokens; the first matching rule applies.',
} as const;

/** JSON Schema (draft 7) of a policy file. */
export const POLICY_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL policy',
  ...closed(
    {
      version: { const: 1, description: 'Version of this format: 1.' },
      tenant: ruledName('Owner of the model; tokens of another tenant are refused.'),
      subjects: named(
        SUBJECT_NAME,
        subject,
        'Users, services and agents. A subject that is not listed has no rights.',
      ),
      roles: named(NAME_RULE, role, 'Data roles by name.'),
      attributes: named(
        NAME_RULE,
        tableAttribute,
        'Attributes of all subjects that are read from an entity, such as the teams of a member. No subject or exchange rule may state them, too.',
      ),
      masks: named(
        NAME_RULE,
        choice(
          ['redact', 'null', 'hash', 'partial', 'year', 'deny'],
          'Display of a masked cell; write "null" in quotes.',
        ),
        'Mask of each sensitivity label; a label that is not listed is `deny`.',
      ),
      order: named(
        MODEL_RULE,
        choice(['by_key'], 'Results that read it have a total order: by key if the query leaves it open.'),
        'Entities and bridges whose hidden rows must not influence the order of a result; costs a sort.',
      ),
      limits: closed(
        {
          subject: quotas(
            closed(QUOTA, ['per'], 'One limit.'),
            'Limits of each subject, in addition to those per second.',
          ),
          chain: quotas(
            closed(QUOTA, ['per'], 'One limit.'),
            'Limits of each chain of subjects, such as an agent acting for one user.',
          ),
          tenant: quotas(closed(QUOTA, ['per'], 'One limit.'), 'Limits of all subjects together.'),
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
        modelName('A column of it. Rows where it is NULL are not aggregated.'),
        'For an entity or bridge: the column that identifies the person a row belongs to; `min_group_size` counts its distinct values.',
      ),
      purposes: named(
        NAME_RULE,
        closed({ description: TEXT }, [], 'A purpose.'),
        'Purposes of data use. A token names them in the claim `purpose`, a request in `OSL-Purpose` or `SET osl.purpose`.',
      ),
      claims: choice(
        ['required'],
        'With `required`, `osl policy push` and `activate` refuse a policy unless all claims of `policy.test.yaml` are proved.',
      ),
      service_accounts: named(
        NAME_RULE,
        serviceAccount,
        'Logins with a password on the Postgres port, by name.',
      ),
      certificates: named(
        NAME_RULE,
        certificate,
        'Client certificates accepted instead of a token, by a name of your choice.',
      ),
      exchange: exchangeRules,
    },
    ['version', 'tenant', 'subjects', 'roles', 'masks'],
    'Access rules: the data that each subject may see.',
  ),
} as const;
