import { type ControlPlace, controlUrl } from '../../control/index.js';

/** What several gateways share by way of a database, and how long this one serves without it. */
export interface ControlSettings {
  readonly place: ControlPlace;
  /** Where the policy stands: the file of `OSL_POLICY`, or the control database, which `osl policy` writes. */
  readonly policySource: 'file' | 'control';
  /** Longer than this without a look at the control database, and what may be served is as `OSL_POLICY_FAILURE` says. */
  readonly silenceMs: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the control database is: from `OSL_CONTROL_URL`, else by the file of `OSL_CONTROL_URL_FILE`; null for none. */
export function controlPlace(env: Environment, path: (value: string) => string): ControlPlace | null {
  const url = env['OSL_CONTROL_URL'] ?? '';
  if (url !== '') return checked({ url });
  const file = env['OSL_CONTROL_URL_FILE'] ?? '';
  return file === '' ? null : { file: path(file) };
}

/** What is written in the environment is wrong from the start; a file is read when it is needed. */
function checked(place: { readonly url: string }): ControlPlace {
  controlUrl(place);
  return Object.freeze(place);
}
