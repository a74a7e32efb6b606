import { type ControlDatabase, type ControlPlace, openControl } from '../../../control/index.js';
import { databasePlace } from '../../../service/settings/control.js';
import { readSetting } from '../../../service/settings/table.js';
import { usage } from '../exit.js';

/** Does `work` with the database of `OSL_CONTROL_URL`, and lets go of it. @throws Failure, ControlFault */
export async function withControl<T>(
  work: (control: { readonly database: ControlDatabase; readonly place: ControlPlace }) => Promise<T>,
): Promise<T> {
  const place = databasePlace(readSetting, 'OSL_CONTROL_URL');
  if (place === null)
    throw usage('set OSL_CONTROL_URL, or OSL_CONTROL_URL_FILE: the database that gateways share');
  const database = openControl(place);
  try {
    return await work({ database, place });
  } finally {
    await database.close();
  }
}
