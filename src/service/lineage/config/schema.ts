import { closed, DRAFT, named, some } from '../../../model/manifest/schema/parts.js';

const NAME = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,62}$',
  description: 'A letter or underscore, then letters, digits, underscores and hyphens, 63 at most.',
} as const;

const SECRET = {
  type: 'string',
  pattern: '^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$',
  description: 'Where a secret is, never the secret: `env:NAME` or `file:/path`.',
} as const;

const URI = {
  type: 'string',
  pattern: '^[A-Za-z][A-Za-z0-9+.-]*://[^\\s/][^\\s]*$',
  maxLength: 500,
} as const;

const endpoint = closed(
  {
    url: {
      type: 'string',
      pattern: '^https?://',
      maxLength: 2000,
      description: 'Where events are posted to.',
    },
    secrets: {
      ...some(SECRET, 'Signing secrets (`whsec_…`), newest first; two while one replaces the other.'),
      maxItems: 2,
    },
    events: some({ enum: ['run', 'dataset'] }, 'Kinds of events. Absent: both.'),
    authorization: {
      ...SECRET,
      description: 'A value for the Authorization header: `env:NAME` or `file:/path`.',
    },
    ca_file: {
      type: 'string',
      minLength: 1,
      description: 'Certificates to trust instead of the system’s, as PEM.',
    },
    allow_addresses: some(
      { type: 'string', pattern: '^[0-9A-Fa-f.:]+/\\d{1,3}$' },
      'Networks (CIDR) that may be reached though they are private, or without TLS.',
    ),
    timeout_ms: {
      type: 'integer',
      minimum: 100,
      maximum: 120_000,
      description: 'Of one attempt. Default: 15000.',
    },
  },
  ['url', 'secrets'],
  'A receiver of events.',
);

/** Schema of the file named by OSL_LINEAGE. */
export const LINEAGE_SCHEMA = {
  $schema: DRAFT,
  ...closed(
    {
      version: { const: 1 },
      namespace: { ...URI, description: 'Of the semantic graph’s datasets. Default: osl-gateway://TENANT.' },
      window_seconds: {
        type: 'integer',
        minimum: 1,
        maximum: 86_400,
        description: 'Runs of one statement within it are one event. Default: 60.',
      },
      outbox_mib: {
        type: 'integer',
        minimum: 1,
        maximum: 65_536,
        description: 'What one endpoint’s undelivered events may take. Default: 64.',
      },
      connectors: named(
        NAME,
        closed(
          {
            namespace: { ...URI, description: 'e.g. postgres://db.example:5432' },
            database: {
              type: 'string',
              minLength: 1,
              maxLength: 200,
              description: 'Put in front of schema.table.',
            },
          },
          ['namespace'],
          'How other producers of lineage call this database.',
        ),
        'Names of databases in events, by connector. Default: host, port and database of its URL.',
      ),
      endpoints: { ...named(NAME, endpoint, 'Receivers, by name.'), minProperties: 1, maxProperties: 16 },
    },
    ['version', 'endpoints'],
    'Who is told of lineage.',
  ),
} as const;
