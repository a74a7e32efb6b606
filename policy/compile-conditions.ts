import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import {
  type CompiledConditions,
  clockIn,
  DAYS,
  type Hours,
  MINUTES_OF_DAY,
  minutesOf,
} from './conditions.js';
import type { GrantConditions, GrantDocument, PolicyDocument } from './document.js';
import type { DocumentPath, ProblemList } from './problems.js';

/** Parses `10.0.0.0/8`, `fd00::/8`, or a single address; null for anything else. */
function networkOf(text: string): { readonly address: string; readonly prefix: number } | null {
  const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const maxPrefix = isIP(address) === 4 ? 32 : 128;
  const prefix = bits === undefined ? maxPrefix : Number(bits);
  return isIP(address) === 0 || prefix > maxPrefix ? null : { address, prefix };
}

/**
 * Returns a predicate for addresses in one of `networks`, or the first invalid network. An IPv4-mapped IPv6 address
 * (`::ffff:10.0.0.1`) counts as the IPv4 address.
 */
function networksOf(networks: readonly string[]): ((address: string) => boolean) | string {
  const list = new BlockList();
  for (const text of networks) {
    const network = networkOf(text);
    if (network === null) return text;
    list.addSubnet(network.address, network.prefix, familyOf(network.address));
  }
  return (address) => {
    const plain = (address.split('%', 1)[0] ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
    return isIP(plain) !== 0 && list.check(plain, familyOf(plain));
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

export interface ConditionsContext {
  readonly problems: ProblemList;
  readonly purposes: ReadonlySet<string>;
}

/**
 * Compiles the conditions of a grant; null if the grant is unconditional.
 *
 * INVARIANT: a grant that names a condition never becomes unconditional; a fault in a condition rejects the whole
 * policy.
 */
export function compileConditions(
  grant: GrantDocument,
  path: DocumentPath,
  context: ConditionsContext,
): CompiledConditions | null {
  const conditions = conditionsIn(grant);
  if (conditions === null) return null;
  const { starts, ends, when, for: purposes, break_glass: breakGlass } = conditions;
  // INVARIANT: the key of a grant that needs an approval contains a hash of the whole grant, so that an approval covers
  // no other grant.
  const approval = conditions.approval && { ...conditions.approval, grant: grantHash(grant) };
  const keyParts = { ...conditions, approval };
  const fault = (at: readonly string[], message: string, hint: string | null = null): void =>
    context.problems.add('condition', [...path, ...at], { message, hint });
  const startsAt = momentOf(starts, 'starts', Number.NEGATIVE_INFINITY, fault);
  const endsAt = momentOf(ends, 'ends', Number.POSITIVE_INFINITY, fault);
  if (startsAt >= endsAt) fault(['ends'], 'the grant ends before it starts');
  if (when !== undefined && Object.keys(when).length === 0) fault(['when'], 'no condition is named');
  for (const purpose of purposes ?? []) {
    if (!context.purposes.has(purpose))
      fault(['for'], `there is no purpose \`${purpose}\``, 'declare it in `purposes`');
  }
  if (purposes?.length === 0) fault(['for'], 'no purpose is named', 'leave `for` out for any');
  const network = when?.networks === undefined ? null : networksOf(when.networks);
  if (typeof network === 'string')
    fault(['when', 'networks'], `\`${network}\` is no network`, 'write it as 10.0.0.0/8 or fd00::/8');
  return Object.freeze({
    key: JSON.stringify(keyParts, canonical),
    startsAt,
    endsAt,
    hours: hoursOf(when, fault),
    surfaces: when?.surfaces === undefined ? null : new Set<string>(when.surfaces),
    network: typeof network === 'string' ? matchNone : network,
    claims: new Map(
      Object.entries(when?.claims ?? {}).map(([name, values]) => [
        name,
        new Set((Array.isArray(values) ? values : [values]).map(String)),
      ]),
    ),
    purposes: purposes === undefined ? null : new Set(purposes),
    breakGlass: breakGlass === undefined ? null : { minutes: breakGlass.minutes, perDay: breakGlass.per_day },
    approval: approval ?? null,
  });
}

/** Reports approver roles (`approval.by`) that nobody can have. */
export function checkApprovers(document: PolicyDocument, problems: ProblemList): void {
  const { roles, subjects, exchange = [] } = document;
  const admin = [...Object.values(subjects), ...exchange].flatMap((owner) => owner.admin ?? []);
  const known = new Set([...Object.keys(roles), ...admin]);
  for (const [role, { grants }] of Object.entries(roles))
    for (const [i, { approval }] of grants.entries())
      if (approval !== undefined && !known.has(approval.by))
        problems.add('condition', ['roles', role, 'grants', i, 'approval', 'by'], {
          message: `nobody can have the role \`${approval.by}\``,
          hint: 'name a role of `roles`, or one that a subject has in `admin`',
        });
}

function grantHash(grant: GrantDocument): string {
  return createHash('sha256').update(JSON.stringify(grant, canonical)).digest('hex').slice(0, 32);
}

type FaultAt = (at: readonly string[], message: string, hint?: string | null) => void;

const matchNone = (): boolean => false;

/** Replacer that makes JSON canonical: lists are treated as sets, and the order of keys does not matter. */
function canonical(_key: string, value: unknown): unknown {
  if (Array.isArray(value)) return [...(value as readonly unknown[])].map(String).sort();
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Parses a time; undefined gives `absent`. A UTC offset is required, so the result does not depend on the machine. */
function momentOf(text: string | undefined, at: string, absent: number, fault: FaultAt): number {
  if (text === undefined) return absent;
  const isWellFormed = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  const moment = isWellFormed ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment) || !isOnCalendar(text))
    fault([at], `\`${text}\` is not a moment`, 'write it with its offset, as 2026-12-31T18:00:00+01:00');
  return moment;
}

/** False for dates such as 30 February, which JavaScript would parse as a day in March. */
function isOnCalendar(text: string): boolean {
  const day = text.slice(0, 10);
  const parsed = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day);
}

function hoursOf(when: GrantDocument['when'], fault: FaultAt): Hours | null {
  if (when?.hours === undefined && when?.days === undefined) {
    if (when?.zone !== undefined) fault(['when', 'zone'], 'a zone is for `hours` or `days`');
    return null;
  }
  const clock = when.zone === undefined ? null : clockIn(when.zone);
  if (when.zone === undefined)
    fault(['when'], '`hours` and `days` need a `zone`', 'such as Europe/Berlin, or UTC');
  else if (clock === null)
    fault(['when', 'zone'], `there is no time zone \`${when.zone}\``, 'a name of the IANA database');
  const from = minutesOf(when.hours?.from ?? '00:00');
  const to = minutesOf(when.hours?.to ?? '24:00');
  if (from === null || to === null || from === MINUTES_OF_DAY)
    fault(['when', 'hours'], 'a time of day is written from `00:00` to `24:00`');
  else if (from === to) fault(['when', 'hours'], 'the window begins and ends at the same time');
  const days = when.days ?? DAYS;
  if (days.length === 0) fault(['when', 'days'], 'no day is named');
  return Object.freeze({
    clock:
      clock ??
      ((): never => {
        throw new RangeError('a policy with a zone that is none serves nobody');
      }),
    from: from ?? 0,
    to: to ?? 0,
    days: new Set(days.map((day) => DAYS.indexOf(day))),
  });
}

/** All grant conditions. The type makes `tsc` fail if one is missing. */
const ALL_CONDITIONS: Readonly<Record<keyof GrantConditions, true>> = Object.freeze({
  starts: true,
  ends: true,
  when: true,
  for: true,
  break_glass: true,
  approval: true,
});

/** Returns the conditions of a grant as written in the policy file; null if the grant is unconditional. */
export function conditionsIn(grant: GrantDocument): GrantConditions | null {
  const entries = Object.keys(ALL_CONDITIONS).flatMap((key) => {
    const value = grant[key as keyof GrantConditions]; // cast: `key` is a key of EVERY
    return value === undefined ? [] : [[key, value] as const];
  });
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

/** Returns a copy of the grant without its conditions. */
export function withoutConditions(grant: GrantDocument): Omit<GrantDocument, keyof GrantConditions> {
  const others = Object.entries(grant).filter(([key]) => !Object.hasOwn(ALL_CONDITIONS, key));
  return Object.fromEntries(others) as Omit<GrantDocument, keyof GrantConditions>; // cast: only conditions are left out
}
