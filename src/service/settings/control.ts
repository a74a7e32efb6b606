import { type ControlPlace, controlUrl } from '../../control/url.js';

/** What several gateways share by way of a database, and how long this one serves without it. */
export interface ControlSettings {
  readonly place: ControlPlace;
  /** Where the policy stands: the file of `OSL_POLICY`, or the control database, which `osl policy` writes. */
  readonly policySource: 'file' | 'control';
  /** Longer than this without an answer of the control database, and nothing is served, unless `OSL_POLICY_FAILURE` is `keep`. */
  readonly silenceMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a database of the gateways is: from the variable, else by the file of `…_FILE`; null for none. */
export function controlPlace(
  env: Environment,
  path: (value: string) => string,
  variable = 'OSL_CONTROL_URL',
): ControlPlace | null {
  const url = env[variable] ?? '';
  if (url !== '') return checked({ url }, variable);
  const file = env[`${variable}_FILE`] ?? '';
  return file === '' ? null : { file: path(file) };
}

/** What is written in the environment is wrong from the start; a file is read when it is needed. */
function checked(place: { readonly url: string }, variable: string): ControlPlace {
  controlUrl(place, variable);
  return Object.freeze(place);
}
