import { type GovernedPlan, lengthOf, noticesOf, oidOf } from 'osl-compiler';
import type { ColumnDescription, WireNotice } from '../../../wire/index.js';
import { MESSAGE_LEVELS } from './setting-list.js';
import type { SessionSettings } from './settings.js';

export const NO_NOTICES: readonly WireNotice[] = Object.freeze([]);

/** Notices about masks and other facts of the plan, sent with the first rows. */
export function planNotices(plan: GovernedPlan): readonly WireNotice[] {
  const { maskedColumns, partialColumns } = plan;
  const told = noticesOf(plan);
  if (maskedColumns.length === 0 && partialColumns.length === 0 && told.length === 0) return NO_NOTICES;
  return [
    ...(maskedColumns.length === 0 ? [] : [`masked for you: ${maskedColumns.join(', ')}`]),
    ...(partialColumns.length === 0
      ? []
      : [`${partialColumns.join(', ')}: computed over values of which some are masked for you`]),
    ...told,
  ].map(notice);
}

export function notice(message: string): WireNotice {
  return { severity: 'NOTICE', sqlstate: '01000', message };
}

/** Plans of the same shape share their outputs. */
const COLUMNS = new WeakMap<GovernedPlan['outputs'], readonly ColumnDescription[]>();

export function columnsOf(outputs: GovernedPlan['outputs']): readonly ColumnDescription[] {
  let columns = COLUMNS.get(outputs);
  if (columns === undefined) {
    columns = Object.freeze(outputs.map(columnOf));
    COLUMNS.set(outputs, columns);
  }
  return columns;
}

function columnOf({ name, type, form }: GovernedPlan['outputs'][number]): ColumnDescription {
  return {
    name,
    typeOid: form?.oid ?? oidOf(type),
    typeLength: form?.length ?? lengthOf(type),
    typeModifier: form?.modifier ?? -1,
  };
}

const RANKS: Readonly<Record<WireNotice['severity'], number>> = {
  DEBUG: MESSAGE_LEVELS.indexOf('debug1'),
  LOG: MESSAGE_LEVELS.indexOf('log'),
  NOTICE: MESSAGE_LEVELS.indexOf('notice'),
  WARNING: MESSAGE_LEVELS.indexOf('warning'),
  INFO: MESSAGE_LEVELS.length, // always sent
};

/** Filters `notices` by the session's `client_min_messages`. */
export function audible(settings: SessionSettings, notices: readonly WireNotice[]): readonly WireNotice[] {
  if (notices.length === 0) return notices;
  const least = MESSAGE_LEVELS.indexOf(settings.show('client_min_messages').value);
  return notices.filter((n) => RANKS[n.severity] >= least);
}
