import {
  type Choice,
  COMPARISONS,
  type DayRange,
  type Filter,
  type FilterValue,
  GRAINS,
  type Group,
  isName,
  keyOf,
  NOTHING,
  OPERATORS,
  type Order,
} from '../choice/choice.js';
import { namedRanges } from '../choice/period.js';

export const PANEL_FORMS = ['chart', 'table', 'both'] as const;
export type PanelForm = (typeof PANEL_FORMS)[number];

/** A panel of a dashboard: a metrics query with a title. */
export interface DashboardPanel {
  readonly title: string;
  readonly show: PanelForm;
  readonly choice: Choice;
  /** Predefined range, such as `last 12 months`, used instead of the range of `choice`; null if none is set. */
  readonly period: string | null;
}

export interface Dashboard {
  readonly title: string;
  /** Roles for which the server lists the dashboard. Only files that the server reads need them. */
  readonly roles: readonly string[];
  readonly panels: readonly DashboardPanel[];
}

export const MOST_PANELS = 30;
export const LONGEST_TITLE = 100;
/** Maximum length of a dashboard's file, in characters. */
export const LONGEST_FILE = 100_000;
/** Maximum length of a link to a dashboard, in characters; longer addresses are cut off by some programs. */
export const LONGEST_LINK = 8_000;
const VERSION = 1;
/** Name of the range without ends, which is the default and so is not stored. */
const ALL_TIME = 'all time';

/** Names of ranges that a panel can have, such as `last 12 months`. */
const PERIODS: readonly string[] = namedRanges('2000-01-01')
  .map(({ name }) => name.toLowerCase())
  .filter((name) => name !== ALL_TIME);

/** Creates a panel. A range that equals a predefined one today is stored by name, so that it moves with the date. */
export function panelOf(choice: Choice, title: string, show: PanelForm, today: string): DashboardPanel {
  const { start, end } = choice.range;
  const named = namedRanges(today).find(({ range }) => range.start === start && range.end === end);
  const period = named?.name.toLowerCase() ?? null;
  return { title, show, choice, period: period === ALL_TIME ? null : period };
}

/** Returns the query of a panel on the day `today`, in UTC. */
export function choiceOn({ choice, period }: DashboardPanel, today: string): Choice {
  const named = namedRanges(today).find(({ name }) => name.toLowerCase() === period);
  return named === undefined ? choice : { ...choice, range: named.range };
}

/** Returns the content of a dashboard's file, without members that have their default value. */
export function fileOf({ title, roles, panels }: Dashboard): Readonly<Record<string, unknown>> {
  return {
    osl_dashboard: VERSION,
    title,
    ...(roles.length === 0 ? {} : { roles }),
    panels: panels.map(panelFile),
  };
}

function panelFile({ title, show, choice, period }: DashboardPanel): Readonly<Record<string, unknown>> {
  const { metrics, groups, filters, range, order, limit, compare } = choice;
  return {
    title,
    ...(show === 'chart' ? {} : { show }),
    metrics,
    ...(groups.length === 0
      ? {}
      : { group_by: groups.map(({ name, grain }) => (grain === null ? name : { name, grain })) }),
    ...(filters.length === 0
      ? {}
      : {
          filters: filters.map(({ name, operator, values }) => ({
            name,
            operator,
            ...(values.length === 0 ? {} : { values }),
          })),
        }),
    ...periodFile(range, period),
    ...(compare === 'none' ? {} : { compare }),
    ...(order === null ? {} : { order_by: `${order.descending ? '-' : ''}${order.name}` }),
    ...(limit === NOTHING.limit ? {} : { limit }),
  };
}

function periodFile({ start, end }: DayRange, period: string | null): Readonly<Record<string, unknown>> {
  if (period !== null) return { period };
  if (start === null && end === null) return {};
  return { period: { ...(start === null ? {} : { start }), ...(end === null ? {} : { end }) } };
}

export type DashboardReading =
  | { readonly kind: 'read'; readonly dashboard: Dashboard }
  /** Faults with their places; never empty. */
  | { readonly kind: 'refused'; readonly problems: readonly FileProblem[] };

/** Reads a dashboard's file, which may come from an untrusted source. Any unknown or invalid member is refused. */
export function readDashboard(text: string): DashboardReading {
  if (text.length > LONGEST_FILE)
    return refused('', `is longer than ${LONGEST_FILE.toLocaleString('en')} characters`);
  try {
    return dashboardIn(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return refused('', `is not JSON: ${error.message}`);
    throw error;
  }
}

function refused(at: string, text: string): DashboardReading {
  return { kind: 'refused', problems: [{ at, text }] };
}

/** Reads the content of a dashboard's file after JSON parsing. */
export function dashboardIn(content: unknown): DashboardReading {
  const reader = new DashboardReader();
  const top = reader.object(content, '', ['osl_dashboard', 'title', 'roles', 'panels']);
  if (top['osl_dashboard'] !== VERSION) reader.fault('osl_dashboard', `must be ${VERSION}`);
  const dashboard: Dashboard = {
    title: reader.text(top['title'], 'title', LONGEST_TITLE),
    roles: reader.list(top['roles'] ?? [], 'roles', 100, (role, at) => reader.text(role, at, 200)),
    panels: reader.list(top['panels'], 'panels', MOST_PANELS, (panel, at) => panelIn(reader, panel, at)),
  };
  if (dashboard.panels.length === 0) reader.fault('panels', 'must have at least one panel');
  return reader.problems.length === 0
    ? { kind: 'read', dashboard }
    : { kind: 'refused', problems: reader.problems };
}

const PANEL_MEMBERS = [
  ...['title', 'show', 'metrics', 'group_by', 'filters', 'period', 'compare', 'order_by', 'limit'],
];

function panelIn(reader: DashboardReader, value: unknown, at: string): DashboardPanel {
  const panel = reader.object(value, at, PANEL_MEMBERS);
  const named = typeof panel['period'] === 'string' ? panel['period'] : null;
  const metrics = reader.list(panel['metrics'], `${at}.metrics`, 50, (one, where) =>
    nameIn(reader, one, where),
  );
  if (metrics.length === 0) reader.fault(`${at}.metrics`, 'must name at least one metric');
  const groups = reader.list(panel['group_by'] ?? [], `${at}.group_by`, 20, (group, where) =>
    groupIn(reader, group, where),
  );
  return {
    title: reader.text(panel['title'], `${at}.title`, LONGEST_TITLE),
    show: reader.word(panel['show'] ?? 'chart', `${at}.show`, PANEL_FORMS),
    period: named === null ? null : reader.word(named, `${at}.period`, PERIODS),
    choice: {
      metrics,
      groups,
      filters: reader.list(panel['filters'] ?? [], `${at}.filters`, 50, (filter, where) =>
        filterIn(reader, filter, where),
      ),
      range: named === null ? rangeIn(reader, panel['period'] ?? {}, `${at}.period`) : NOTHING.range,
      compare: reader.word(panel['compare'] ?? 'none', `${at}.compare`, COMPARISONS),
      order: orderIn(reader, panel['order_by'], `${at}.order_by`, [...metrics, ...groups.map(keyOf)]),
      limit: reader.count(panel['limit'] ?? NOTHING.limit, `${at}.limit`, 100_000),
    },
  };
}

function nameIn(reader: DashboardReader, value: unknown, at: string): string {
  const name = reader.text(value, at, 200);
  if (name !== '' && !isName(name)) reader.fault(at, 'is not a name');
  return name;
}

function groupIn(reader: DashboardReader, value: unknown, at: string): Group {
  if (typeof value === 'string') return { name: nameIn(reader, value, at), grain: null };
  const group = reader.object(value, at, ['name', 'grain']);
  return {
    name: nameIn(reader, group['name'], `${at}.name`),
    grain: reader.word(group['grain'], `${at}.grain`, GRAINS),
  };
}

function filterIn(reader: DashboardReader, value: unknown, at: string): Filter {
  const filter = reader.object(value, at, ['name', 'operator', 'values']);
  const operator = reader.word(filter['operator'], `${at}.operator`, OPERATORS);
  const values = reader.list(filter['values'] ?? [], `${at}.values`, 200, (one, where): FilterValue => {
    if (typeof one === 'string' || typeof one === 'boolean') return one;
    if (typeof one === 'number') return one;
    reader.fault(where, 'must be a text, a number, true or false');
    return '';
  });
  const takesValues = operator === 'is' || operator === 'is_not';
  if (takesValues !== values.length > 0)
    reader.fault(`${at}.values`, takesValues ? 'must have a value' : `must be absent for ${operator}`);
  return { name: nameIn(reader, filter['name'], `${at}.name`), operator, values };
}

function rangeIn(reader: DashboardReader, value: unknown, at: string): DayRange {
  const range = reader.object(value, at, ['start', 'end']);
  return {
    start: reader.day(range['start'], `${at}.start`),
    end: reader.day(range['end'], `${at}.end`),
  };
}

function orderIn(
  reader: DashboardReader,
  value: unknown,
  at: string,
  names: readonly string[],
): Order | null {
  if (value === undefined) return null;
  const text = reader.text(value, at, 201);
  const name = text.replace(/^-/, '');
  if (text !== '' && !names.includes(name)) reader.fault(at, 'must be a metric or a group of the panel');
  return { name, descending: text.startsWith('-') };
}

export interface FileProblem {
  /** Path of the member: `panels[0].title`; empty for the whole file. */
  readonly at: string;
  readonly text: string;
}

/** Checks the members of a file and collects the faults. Replaces an invalid member with a placeholder. */
class DashboardReader {
  readonly problems: FileProblem[] = [];

  fault(at: string, text: string): void {
    this.problems.push({ at, text });
  }

  object(value: unknown, at: string, members: readonly string[]): Readonly<Record<string, unknown>> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.fault(at, 'must be an object');
      return {};
    }
    for (const name of Object.keys(value)) {
      if (!members.includes(name)) this.fault(at === '' ? name : `${at}.${name}`, 'is unknown');
    }
    return { ...value };
  }

  list<T>(value: unknown, at: string, most: number, read: (one: unknown, at: string) => T): readonly T[] {
    if (!Array.isArray(value)) {
      this.fault(at, 'must be a list');
      return [];
    }
    if (value.length > most) this.fault(at, `must have at most ${most} elements`);
    return value.slice(0, most).map((one: unknown, i) => read(one, `${at}[${i}]`));
  }

  text(value: unknown, at: string, longest: number): string {
    if (typeof value !== 'string' || value.trim() === '') this.fault(at, 'must be a text that is not empty');
    else if (value.length > longest) this.fault(at, `must have at most ${longest} characters`);
    else return value;
    return '';
  }

  word<T extends string>(value: unknown, at: string, words: readonly [T, ...T[]] | readonly T[]): T {
    const known = words.find((word) => word === value);
    if (known === undefined) this.fault(at, `must be one of: ${words.join(', ')}`);
    return known ?? (words[0] as T); // `words` is never empty
  }

  count(value: unknown, at: string, most: number): number {
    if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= most) return value;
    this.fault(at, `must be a whole number from 1 to ${most.toLocaleString('en')}`);
    return 1;
  }

  /** Reads a day; null if the member is absent or invalid. */
  day(value: unknown, at: string): string | null {
    if (value === undefined) return null;
    if (typeof value === 'string' && isDay(value)) return value;
    this.fault(at, 'must be a day, such as 2026-01-31');
    return null;
  }
}

/** True for a valid calendar date in the form `2026-01-31`. */
function isDay(text: string): boolean {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
