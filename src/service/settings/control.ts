import { type ControlPlace, controlUrl } from '../../base/control/url.js';
import { StartProblem } from '../../base/start-problem.js';
import type { ReadSetting, SettingValue } from './table.js';

/** The database that several gateways share, and how long this one serves without it. */
export interface ControlSettings {
  readonly place: ControlPlace;
  readonly policySource: SettingValue<'OSL_POLICY_SOURCE'>;
  /** Time without an answer of the control database after which nothing is served, unless `OSL_POLICY_FAILURE` is `keep`. */
  readonly silenceMs: number;
}

/** Null for a gateway that shares nothing. @throws StartProblem */
export function controlSettings(read: ReadSetting): ControlSettings | null {
  const place = databasePlace(read, 'OSL_CONTROL_URL');
  const policySource = read('OSL_POLICY_SOURCE');
  const silenceMs = read('OSL_CONTROL_SILENCE_SECONDS');
  if (place === null && policySource === 'control')
    throw new StartProblem('OSL_POLICY_SOURCE=control needs OSL_CONTROL_URL, or OSL_CONTROL_URL_FILE');
  return place === null ? null : Object.freeze({ place, policySource, silenceMs });
}

/**
 * The database named by `variable`, else by the file of `…_FILE`; null if neither is set. A URL in the environment is
 * checked here, one in a file when it is used.
 *
 * @throws StartProblem
 */
export function databasePlace(
  read: ReadSetting,
  variable: 'OSL_CONTROL_URL' | 'OSL_AUDIT_URL',
): ControlPlace | null {
  const url = read(variable);
  if (url !== null) {
    controlUrl({ url }, variable);
    return Object.freeze({ url });
  }
  const file = read(`${variable}_FILE`);
  return file === null ? null : { file };
}
