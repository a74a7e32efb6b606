import { exportModel, manifestText, ossieText } from '../../../interchange/index.js';
import { SHOP_DBT } from './shop.js';
import { imported } from './support.js';

/** The shop as `osl export ossie` writes it. */
export function exportedShop(): string {
  const text = manifestText(imported('dbt', SHOP_DBT).document);
  return ossieText(exportModel({ file: 'manifest.yaml', text }, null).ossie);
}
