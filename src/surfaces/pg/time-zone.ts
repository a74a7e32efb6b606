import { type RunningParts, timeZoneNamed } from '../../ask/index.js';
import type { Command } from './command.js';
import { invalid } from './settings.js';

const TIME_ZONE = 'timezone';

/** Replaces time zone names in `command` by Postgres' spelling. @throws WireError 22023, QueryError E0510, E0523 */
export async function withKnownZones(
  service: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  command: Command,
): Promise<Command> {
  if (command.kind !== 'set' || !command.assignments.some((a) => isZone(a.name))) return command;
  const assignments = [];
  for (const { name, value } of command.assignments) {
    const zone = value === null || !isZone(name) ? value : await resolveZone(service, value);
    assignments.push({ name, value: zone });
  }
  return { ...command, assignments };
}

/**
 * Replaces the time zone in startup parameters by Postgres' spelling. @throws WireError 22023, QueryError E0510,
 * E0523
 */
export async function withKnownZone(
  service: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  startup: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const value = startup.get('TimeZone');
  if (value === undefined) return startup;
  return new Map([...startup, ['TimeZone', await resolveZone(service, value)]]);
}

function isZone(name: string): boolean {
  return name.toLowerCase() === TIME_ZONE;
}

/** The most common zones, known without a database. */
const OURS: ReadonlyMap<string, string> = new Map([
  ['utc', 'UTC'],
  ['etc/utc', 'Etc/UTC'],
]);

async function resolveZone(
  service: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  text: string,
): Promise<string> {
  const zone = OURS.get(text.toLowerCase()) ?? (await timeZoneNamed(service, text));
  if (zone === null) throw invalid('TimeZone', text);
  return zone;
}
