import { type ControlPlace, controlUrl } from '../../base/control/url.js';
import { StartProblem } from '../../base/start-problem.js';
import type { ReadSetting, SettingValue } from './table.js';

/** Database shared by several gateways. */
export interface ControlSettings {
  readonly place: ControlPlace;
  readonly policySource: SettingValue<'OSL_POLICY_SOURCE'>;
  /** Silence of the database after which nothing is served, unless `OSL_POLICY_FAILURE` is `keep`. */
  readonly silenceMs: number;
}

/** Null for a stand-alone gateway. @throws StartProblem */
export function controlSettings(read: ReadSetting): ControlSettings | null {
  const place = databasePlace(read, 'OSL_CONTROL_URL');
  const policySource = read('OSL_POLICY_SOURCE');
  const silenceMs = read('OSL_CONTROL_SILENCE_SECONDS');
  if (place === null && policySource === 'control')
    throw new StartProblem('OSL_POLICY_SOURCE=control needs OSL_CONTROL_URL, or OSL_CONTROL_URL_FILE');
  return place === null ? null : Object.freeze({ place, policySource, silenceMs });
}

/**
 * Database URL in `variable`, or file in `…_FILE`; null if neither is set. A URL in the environment is checked here,
 * one in a file when used.
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
