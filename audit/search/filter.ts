import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fingerprints } from '../fingerprint.js';
import { keyName } from '../format.js';
import type { AuditDecision, AuditOutcome, AuditRecord, AuditSurface } from '../record.js';

/** Search filter: a record matches if it has every value named here. */
export interface AuditFilter {
  /** Subject of the record, or anybody in its delegation chain. */
  readonly subject?: string;
  /** Object of the record: `osl.entities.order`, or `order`. */
  readonly object?: string;
  /** A name that no catalog had when it was asked for, as each key of the log fingerprints it: see `fingerprintsOf`. */
  readonly fingerprints?: readonly string[];
  /** RFC 3339, UTC: records from here … */
  readonly since?: string;
  /** … to before here. */
  readonly until?: string;
  readonly kind?: AuditRecord['kind'];
  readonly action?: string;
  readonly surface?: AuditSurface;
  readonly decision?: AuditDecision;
  readonly outcome?: AuditOutcome;
  readonly code?: string;
  readonly requestId?: string;
}

/** A filter as it is asked for. */
export interface AuditQuery extends Omit<AuditFilter, 'fingerprints'> {
  /** A name that was asked for and declared nowhere; the log has its fingerprints alone. */
  readonly name?: string;
}

const ENTITIES = 'osl.entities.';

/** The names by which records may list an object. */
export function namesOf(object: string): readonly string[] {
  return object.startsWith(ENTITIES) ? [object] : [object, `${ENTITIES}${object}`];
}

/** Everybody who had a part in a record. */
export function partiesOf({ subject, chain }: AuditRecord): readonly string[] {
  return subject === null || chain.includes(subject) ? chain : [...chain, subject];
}

/** A record whose list of objects was cut counts as one that may have touched any: nobody who did is left out. */
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

/** An outcome decides nothing but a denial; one that a restart made up in older versions repeats what was decided before. */
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

/** Prefix of the fingerprint of a name that no catalog had, among the objects of a record. */
const UNDECLARED = 'undeclared:';

/** Among the objects of a record: a name that no catalog had, by its fingerprint. */
export function undeclaredObject(fingerprint: string): string {
  return `${UNDECLARED}${fingerprint}`;
}

/**
 * `name` as records of a log list it that was asked for and declared nowhere: one object for each key of fingerprints
 * that is in the directory. A key that was destroyed gives none, so what it hid stays hidden.
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
