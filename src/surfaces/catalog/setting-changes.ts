/** SQLSTATE of notices that carry a `set_config` call. Not used by Postgres. */
export const SETTING_CHANGED = 'OSL01';

/** A `set_config` call; a null value resets. */
export interface SettingChange {
  readonly name: string;
  readonly value: string | null;
  /** Until the transaction ends. */
  readonly local: boolean;
}

interface SettingNotice {
  readonly sqlstate: string;
  readonly message: string;
}

/** Setting change in `notice`; null for a notice to the client. */
export function settingChange({ sqlstate, message }: SettingNotice): SettingChange | null {
  if (sqlstate !== SETTING_CHANGED) return null;
  const [name, value, local] = JSON.parse(message) as [string, string | null, boolean]; // written by our own function
  return { name, value, local };
}
