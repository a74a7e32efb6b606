import { StartProblem } from '../../base/start-problem.js';

/** Whether `/console` is served; `admin`: with what admins do. */
export type ConsoleSettings = (typeof CONSOLES)[number];

export const CONSOLES = ['off', 'on', 'admin'] as const;

/** @throws StartProblem */
export function consoleSettings(env: Readonly<Record<string, string | undefined>>): ConsoleSettings {
  const text = env['OSL_CONSOLE'] ?? '';
  const word = text === '' ? 'off' : CONSOLES.find((known) => known === text);
  if (word === undefined) throw new StartProblem(`OSL_CONSOLE must be off or on or admin, not \`${text}\``);
  return word;
}
