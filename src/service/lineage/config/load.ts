import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartProblem } from '../../../base/start-problem.js';
import { messageOf } from '../../../base/thrown.js';
import { readText } from '../../../model/manifest/files.js';
import { shapeCheck } from '../../../model/manifest/schema/check.js';
import { closed, DRAFT, named, some } from '../../../model/manifest/schema/json-schema.js';
import { parseSource, throwProblems } from '../../../model/manifest/source.js';
import { parseNetwork } from '../delivery/address.js';
import { readSecret, signingKey } from './secrets.js';

export type EventKind = 'run' | 'dataset';

/** A receiver of events, as plain data for the delivery thread. */
export interface LineageEndpoint {
  readonly name: string;
  readonly url: string;
  /** One or two secrets, newest first; see `readSecret`. */
  readonly secrets: readonly string[];
  readonly events: readonly EventKind[];
  readonly authorization: string | null;
  /** Certificate authorities in PEM; null means those of the system. */
  readonly ca: string | null;
  readonly allowAddresses: readonly string[];
  readonly timeoutMs: number;
}

export interface LineageConfig {
  /** Namespace of the events; null: derived from the tenant. */
  readonly namespace: string | null;
  readonly windowMs: number;
  readonly outboxBytes: number;
  readonly connectors: ReadonlyMap<string, { readonly namespace: string; readonly database: string | null }>;
  readonly endpoints: readonly LineageEndpoint[];
}

interface EndpointDocument {
  readonly url: string;
  readonly secrets: readonly string[];
  readonly events?: readonly EventKind[];
  readonly authorization?: string;
  readonly ca_file?: string;
  readonly allow_addresses?: readonly string[];
  readonly timeout_ms?: number;
}

interface LineageFile {
  readonly namespace?: string;
  readonly window_seconds?: number;
  readonly outbox_mib?: number;
  readonly connectors?: Readonly<Record<string, { readonly namespace: string; readonly database?: string }>>;
  readonly endpoints: Readonly<Record<string, EndpointDocument>>;
}

const MIB = 1_048_576;

/**
 * Loads the file of receivers, and checks that its secrets can be read.
 *
 * @throws ManifestProblems for a faulty file; StartProblem for faulty secrets or certificates
 */
export async function loadLineageConfig(file: string): Promise<LineageConfig> {
  const source = parseSource(await readText(file), file);
  throwProblems(source, shape(source.value));
  const document = source.value as LineageFile; // cast: checked by the schema
  const endpoints = Object.entries(document.endpoints).map(([name, e]) =>
    parseEndpoint(name, e, dirname(file)),
  );
  return Object.freeze({
    namespace: document.namespace ?? null,
    windowMs: (document.window_seconds ?? 60) * 1_000,
    outboxBytes: (document.outbox_mib ?? 64) * MIB,
    connectors: new Map(
      Object.entries(document.connectors ?? {}).map(([name, c]) => [
        name,
        { namespace: c.namespace, database: c.database ?? null },
      ]),
    ),
    endpoints: Object.freeze(endpoints),
  });
}

function parseEndpoint(name: string, document: EndpointDocument, dir: string): LineageEndpoint {
  const fault = (message: string): StartProblem =>
    new StartProblem(`lineage endpoint \`${name}\`: ${message}`);
  const { url, secrets, events, authorization, ca_file, allow_addresses, timeout_ms } = document;
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || parsed.username !== '' || parsed.password !== '')
    throw fault('its url must be an http or https URL without a user');
  const resolveReference = (reference: string): string =>
    reference.startsWith('file:') ? `file:${resolve(dir, reference.slice(5))}` : reference;
  const keys = secrets.map(resolveReference);
  const bearer = authorization === undefined ? null : resolveReference(authorization);
  try {
    for (const secret of keys) signingKey(readSecret(secret));
    if (bearer !== null) readSecret(bearer);
    for (const network of allow_addresses ?? []) parseNetwork(network);
  } catch (error) {
    throw fault(messageOf(error));
  }
  return Object.freeze({
    name,
    url,
    secrets: keys,
    events: events ?? (['run', 'dataset'] as const),
    authorization: bearer,
    ca: ca_file === undefined ? null : readPem(resolve(dir, ca_file), fault),
    allowAddresses: allow_addresses ?? [],
    timeoutMs: timeout_ms ?? 15_000,
  });
}

function readPem(file: string, fault: (message: string) => StartProblem): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw fault(`its ca_file ${file} cannot be read`);
  }
}

const NAME = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,62}$',
  description: 'A letter or underscore, then letters, digits, underscores and hyphens, 63 at most.',
} as const;

const SECRET = {
  type: 'string',
  pattern: '^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$',
  description: 'Reference to a secret, never the secret itself: `env:NAME` or `file:/path`.',
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
      description: 'URL to which events are posted.',
    },
    secrets: {
      ...some(SECRET, 'Signing secrets (`whsec_…`), newest first; two while one replaces the other.'),
      maxItems: 2,
    },
    events: some({ enum: ['run', 'dataset'] }, 'Kinds of events. Absent: both.'),
    authorization: {
      ...SECRET,
      description: 'Reference to the value of the Authorization header: `env:NAME` or `file:/path`.',
    },
    ca_file: {
      type: 'string',
      minLength: 1,
      description: 'Certificates to trust instead of the system’s, as PEM.',
    },
    allow_addresses: some(
      { type: 'string', pattern: '^[0-9A-Fa-f.:]+/\\d{1,3}$' },
      'Networks (CIDR) that may be reached although they are private or without TLS.',
    ),
    timeout_ms: {
      type: 'integer',
      minimum: 100,
      maximum: 120_000,
      description: 'Timeout of one attempt, in milliseconds. Default: 15000.',
    },
  },
  ['url', 'secrets'],
  'A receiver of events.',
);

/** Schema of the file named by OSL_LINEAGE. */
const LINEAGE_SCHEMA = {
  $schema: DRAFT,
  ...closed(
    {
      version: { const: 1 },
      namespace: {
        ...URI,
        description: 'Namespace of the semantic graph’s datasets. Default: osl-gateway://TENANT.',
      },
      window_seconds: {
        type: 'integer',
        minimum: 1,
        maximum: 86_400,
        description:
          'Length of the window, in seconds; runs of one statement within it become one event. Default: 60.',
      },
      outbox_mib: {
        type: 'integer',
        minimum: 1,
        maximum: 65_536,
        description: 'Maximum size of the undelivered events of one endpoint, in MiB. Default: 64.',
      },
      connectors: named(
        NAME,
        closed(
          {
            namespace: {
              ...URI,
              description: 'Namespace of the database, such as postgres://db.example:5432.',
            },
            database: {
              type: 'string',
              minLength: 1,
              maxLength: 200,
              description: 'Prefix of `schema.table` in the names of datasets.',
            },
          },
          ['namespace'],
          'Name of this database as used by other producers of lineage.',
        ),
        'Names of databases in events, by connector. Default: host, port and database of its URL.',
      ),
      endpoints: { ...named(NAME, endpoint, 'Receivers, by name.'), minProperties: 1, maxProperties: 16 },
    },
    ['version', 'endpoints'],
    'Receivers of lineage events.',
  ),
} as const;

const shape = shapeCheck(LINEAGE_SCHEMA);
