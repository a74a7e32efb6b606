import { StartProblem } from '../../base/start-problem.js';

/** Whom the server tells of what people should look at. */
export interface AlarmSettings {
  /** Where a broken glass is told of; null: in the log alone. */
  readonly url: string | null;
}

/** @throws StartProblem */
export function alarmSettings(env: Readonly<Record<string, string | undefined>>): AlarmSettings {
  const url = env['OSL_ALARM_URL'] ?? '';
  if (url === '') return Object.freeze({ url: null });
  if (!URL.canParse(url) || !['http:', 'https:'].includes(new URL(url).protocol))
    throw new StartProblem('OSL_ALARM_URL must be a URL of http or https');
  return Object.freeze({ url });
}
