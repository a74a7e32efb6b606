import type { GovernedPlan } from 'osl-compiler';
import type { StatementSettings } from '../engine/index.js';
import { SETTING } from '../row-security/index.js';
import type { Service } from '../service/service.js';
import type { Caller } from './index.js';

/**
 * What is in force for one statement of `caller`: `settings`, and its rights where policies of the database itself
 * stand behind the plan.
 */
export function settingsFor(
  service: Service,
  caller: Caller,
  plan: GovernedPlan,
  settings: StatementSettings | undefined,
): StatementSettings | undefined {
  const connector = plan.connector ?? service.defaultConnector;
  if (caller.manifest.connectors.get(connector)?.rowSecurity !== true) return settings;
  const rights = service.rowRights(connector).rightsOf(caller, Date.now());
  return [...(settings ?? []), [SETTING, rights]];
}
