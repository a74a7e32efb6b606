import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StartProblem } from '../../../base/start-problem.js';
import { messageOf } from '../../../base/thrown.js';
import { shapeCheck } from '../../../model/manifest/schema/check.js';
import { parseSource, raise, readText } from '../../../model/manifest/source.js';
import { networkOf } from '../delivery/address.js';
import { LINEAGE_SCHEMA } from './schema.js';
import { readSecret, signingKey } from './secret.js';

export type EventKind = 'run' | 'dataset';

/** A receiver of events; plain data, sent to the delivery thread. */
export interface LineageEndpoint {
  readonly name: string;
  readonly url: string;
  /** One or two, newest first; see `readSecret`. */
  readonly secrets: readonly string[];
  readonly events: readonly EventKind[];
  readonly authorization: string | null;
  /** PEM; null: the system's certificates. */
  readonly ca: string | null;
  /** CIDR. */
  readonly allowAddresses: readonly string[];
  readonly timeoutMs: number;
}

export interface LineageConfig {
  /** Null: derived from the tenant. */
  readonly namespace: string | null;
  readonly windowMs: number;
  /** Per endpoint. */
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

const shape = shapeCheck(LINEAGE_SCHEMA);
const MIB = 1_048_576;

/**
 * Loads the file of receivers, and checks that its secrets can be read.
 *
 * @throws ManifestProblems for a faulty file; StartProblem for faulty secrets or certificates
 */
export async function loadLineageConfig(file: string): Promise<LineageConfig> {
  const source = parseSource(await readText(file), file);
  raise(source, shape(source.value));
  const document = source.value as LineageFile; // checked by the schema
  const endpoints = Object.entries(document.endpoints).map(([name, e]) => endpointOf(name, e, dirname(file)));
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

function endpointOf(name: string, document: EndpointDocument, dir: string): LineageEndpoint {
  const fault = (message: string): StartProblem =>
    new StartProblem(`lineage endpoint \`${name}\`: ${message}`);
  const { url, secrets, events, authorization, ca_file, allow_addresses, timeout_ms } = document;
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || parsed.username !== '' || parsed.password !== '')
    throw fault('its url must be an http or https URL without a user');
  const placed = (reference: string): string =>
    reference.startsWith('file:') ? `file:${resolve(dir, reference.slice(5))}` : reference;
  const keys = secrets.map(placed);
  const bearer = authorization === undefined ? null : placed(authorization);
  try {
    for (const secret of keys) signingKey(readSecret(secret));
    if (bearer !== null) readSecret(bearer);
    for (const network of allow_addresses ?? []) networkOf(network);
  } catch (error) {
    throw fault(messageOf(error));
  }
  return Object.freeze({
    name,
    url,
    secrets: keys,
    events: events ?? (['run', 'dataset'] as const),
    authorization: bearer,
    ca: ca_file === undefined ? null : pem(resolve(dir, ca_file), fault),
    allowAddresses: allow_addresses ?? [],
    timeoutMs: timeout_ms ?? 15_000,
  });
}

function pem(file: string, fault: (message: string) => StartProblem): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw fault(`its ca_file ${file} cannot be read`);
  }
}
