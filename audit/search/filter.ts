import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fingerprints } from '../fingerprint.js';
import { keyName } from '../format.js';
import type { AuditDecision, AuditOutcome, AuditRecord, AuditSurface } from '../record.js';

/** Conditions of a search. A record matches if it meets all of them. */
export interface AuditFilter {
  /** Subject of the record, or a member of its delegation chain. */
  readonly subject?: string;
  /** Object name: `osl.entities.order` or `order`. */
  readonly object?: string;
  /** Fingerprints of a name that the manifest does not declare; see `fingerprintsOf`. */
  readonly fingerprints?: readonly string[];
  /** Earliest time, RFC 3339, UTC, inclusive. */
  readonly since?: string;
  /** Latest time, RFC 3339, UTC, exclusive. */
  readonly until?: string;
  readonly kind?: AuditRecord['kind'];
  readonly action?: string;
  readonly surface?: AuditSurface;
  readonly decision?: AuditDecision;
  readonly outcome?: AuditOutcome;
  readonly code?: string;
  readonly requestId?: string;
}

export interface AuditQuery extends Omit<AuditFilter, 'fingerprints'> {
  /** A name that the manifest does not declare. The log contains only fingerprints of such names. */
  readonly name?: string;
}

const ENTITIES = 'osl.entities.';

/** Returns the possible names of an object in records: as given, and with the prefix `osl.entities.`. */
export function namesOf(object: string): readonly string[] {
  return object.startsWith(ENTITIES) ? [object] : [object, `${ENTITIES}${object}`];
}

/** Returns the subject of a record and the members of its delegation chain. */
export function partiesOf({ subject, chain }: AuditRecord): readonly string[] {
  return subject === null || chain.includes(subject) ? chain : [...chain, subject];
}

/** True if the record matches. A shortened object list matches every object, so that no access is missed. */
export function matches(record: AuditRecord, filter: AuditFilter): boolean {
  const { subject, object, fingerprints, since, until } = filter;
  if (subject !== undefined && !partiesOf(record).includes(subject)) return false;
  if (object !== undefined && record.objects_omitted === 0 && !touches(record, object)) return false;
  if (fingerprints !== undefined && record.objects_omitted === 0 && !hasOneOf(record, fingerprints))
    return false;
  if (since !== undefined && record.ts < since) return false;
  if (until !== undefined && record.ts >= until) return false;
  return (
    same(filter.kind, record.kind) &&
    same(filter.action, record.action) &&
    same(filter.surface, record.surface) &&
    same(filter.decision, decisionIn(record)) &&
    same(filter.outcome, record.outcome) &&
    same(filter.code, record.code) &&
    same(filter.requestId, record.request_id)
  );
}

/**
 * Returns the decision that a record reports, or null. The decision of an outcome counts only if it is a denial: older
 * versions repeated the decision in the outcomes that were added after a restart.
 */
export function decisionIn({ kind, decision }: AuditRecord): AuditDecision | null {
  return kind === 'outcome' && decision !== 'deny' ? null : decision;
}

function hasOneOf({ objects }: AuditRecord, names: readonly string[]): boolean {
  return names.some((name) => objects.includes(name));
}

function touches({ objects }: AuditRecord, object: string): boolean {
  return namesOf(object).some((name) => objects.includes(name));
}

function same<T>(wanted: T | undefined, is: T): boolean {
  return wanted === undefined || wanted === is;
}

/** Prefix of the fingerprint of an undeclared name in `objects`. */
const UNDECLARED = 'undeclared:';

/** Entry of `objects` for an undeclared name. */
export function undeclaredObject(fingerprint: string): string {
  return `${UNDECLARED}${fingerprint}`;
}

/**
 * Returns the entries that an undeclared name may have in `objects`: one for each segment key in the directory.
 * Occurrences cannot be found if their key has been destroyed.
 */
export async function fingerprintsOf(dir: string, name: string): Promise<readonly string[]> {
  const numbers = (await readdir(dir)).map(keyNumber).filter((number) => number !== null);
  return Promise.all(
    numbers
      .sort((a, b) => a - b)
      .map(async (number) => {
        const key = await readFile(join(dir, keyName(number)));
        return undeclaredObject(`${number}.${new Fingerprints(key).of(name)}`);
      }),
  );
}

function keyNumber(file: string): number | null {
  const [, digits] = /^segment-(\d{8})\.key$/.exec(file) ?? [];
  return digits === undefined ? null : Number(digits);
}
