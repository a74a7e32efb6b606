import type { GovernedPlan } from 'osl-compiler';
import type { StatementSettings } from '../../engine/index.js';
import { SETTING } from '../../row-security/index.js';
import type { Caller } from '../request/caller.js';
import type { RunningParts } from './parts.js';

/**
 * What is in force for one statement of `caller`: `settings`, and its rights where policies of the database itself
 * stand behind the plan.
 */
export function settingsFor(
  parts: Pick<RunningParts, 'defaultConnector' | 'rowRights'>,
  caller: Caller,
  plan: GovernedPlan,
  settings: StatementSettings | undefined,
): StatementSettings | undefined {
  const connector = plan.connector ?? parts.defaultConnector;
  if (caller.manifest.connectors.get(connector)?.rowSecurity !== true) return settings;
  const rights = parts.rowRights(connector).rightsOf(caller, Date.now());
  return [...(settings ?? []), [SETTING, rights]];
}
