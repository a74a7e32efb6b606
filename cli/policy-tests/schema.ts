import { VISIBILITIES } from '../../src/model/graph/index.js';
import { closed, DRAFT, list, named, some, TEXT } from '../../src/model/manifest/schema/parts.js';

const SUBJECT = { ...TEXT, description: 'A subject of the policy.' } as const;
const NAMES = (description: string) => list({ type: 'string', minLength: 1, maxLength: 200 }, description);

const VALUE = {
  type: ['string', 'number', 'boolean', 'null', 'array', 'object'],
  description: 'As REST writes it.',
} as const;

const ROWS = (description: string) =>
  ({
    type: 'array',
    items: { type: 'object', additionalProperties: VALUE },
    maxItems: 10_000,
    description,
  }) as const;

const expectation = closed(
  {
    decision: {
      type: 'string',
      pattern: '^(allow|E[0-9]{4})$',
      description: '`allow`, or the code of the refusal. Default: allow.',
    },
    columns: NAMES('The columns of the answer, in their order.'),
    masked: NAMES('The columns of the answer that something masked is in, all of them; [] for none.'),
    rows: ROWS('The rows of the answer over `data`, in any order.'),
    in_order: { type: 'boolean', description: 'Whether `rows` are in the order of the answer.' },
    row_count: { type: 'integer', minimum: 0, description: 'How many rows the answer has over `data`.' },
    sql: {
      type: 'string',
      minLength: 1,
      description: 'The statement that goes to the database; white space counts as one blank.',
    },
    sees: {
      enum: VISIBILITIES,
      description: 'Of `object`: how the caller sees the column; an entity is seen where a column of it is.',
    },
  },
  [],
  'What is to come of it. Without `decision` it is allowed.',
);

const test = closed(
  {
    name: { ...TEXT, description: 'What the test says, in a sentence.' },
    as: { ...SUBJECT, description: 'Who asks.' },
    chain: some(SUBJECT, 'Who asks for whom: root first, the asker last. In the place of `as`.'),
    roles: NAMES('Data roles that the token claims. Absent: all that the asker can have.'),
    from: closed(
      {
        surface: { enum: ['rest', 'wire', 'mcp'], description: 'Default: rest.' },
        address: { ...TEXT, description: 'Of the peer.' },
        purpose: { ...TEXT, description: 'What the caller says that it is for.' },
        claims: named(
          { type: 'string', minLength: 1 },
          NAMES('Its values.'),
          'What else the token says, each claim with its values.',
        ),
        at: {
          ...TEXT,
          description: 'A moment by RFC 3339, of a test of an `object` alone. Default: now.',
        },
      },
      [],
      'In what circumstances, for grants with conditions.',
    ),
    ask: { type: 'string', minLength: 1, description: 'A question in OSL-SQL.' },
    sql: { type: 'string', minLength: 1, description: 'A question in raw SQL.' },
    metrics: { type: 'object', description: 'A metrics body, as `POST /osl/query` takes it.' },
    object: {
      ...TEXT,
      description:
        'An entity or a column, `osl.entities.customer.email`: how it is seen, without a question.',
    },
    expect: expectation,
  },
  ['name', 'expect'],
  'One expectation. It has `as` or `chain`, and one of `ask`, `sql`, `metrics` and `object`.',
);

export const POLICY_TESTS_SCHEMA = {
  $schema: DRAFT,
  title: 'Tests of an OSL Gateway policy',
  ...closed(
    {
      version: { const: 1, description: 'Version of this format: 1.' },
      manifest: { ...TEXT, description: 'The manifest; relative to this file. Default: manifest.yaml.' },
      policy: { ...TEXT, description: 'The policy; relative to this file. Default: policy.yaml.' },
      data: named(
        {
          type: 'string',
          pattern: '^[^.]+\\..+$',
          description: 'A table as sources name it: `db.shop.customers`.',
        },
        ROWS('Rows by the names of the table’s columns; a column that is left out is NULL.'),
        'Rows of tables of the manifest, for `rows` and `row_count`.',
      ),
      tests: {
        type: 'array',
        items: test,
        minItems: 1,
        maxItems: 10_000,
        description: 'The tests, each by itself.',
      },
    },
    ['version', 'tests'],
    'What callers are to see under a policy.',
  ),
} as const;
