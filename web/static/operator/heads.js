// The heads of a table, by which it is sorted.

import { make } from '../page/elements.js';

/**
 * @param {HTMLElement} row
 * @param {[column: string, text: string][]} columns an empty column cannot be sorted by
 * @param {{by: string, ascending: boolean}} sort is changed
 * @param {() => void} onSort
 */
export function heads(row, columns, sort, onSort) {
  const cells = columns.map(([column, text]) => {
    const cell = make('span', column === '' ? 'head' : 'head sorts');
    cell.setAttribute('role', 'columnheader');
    if (column === '') {
      cell.textContent = text;
      return cell;
    }
    const button = make('button', '', text);
    button.type = 'button';
    button.addEventListener('click', () => {
      // Names go up, and figures down, at first.
      sort.ascending = sort.by === column ? !sort.ascending : ['node', 'room', 'version'].includes(column);
      sort.by = column;
      paint();
      onSort();
    });
    cell.append(button);
    return cell;
  });
  const paint = () => {
    for (const [at, [column]] of columns.entries()) {
      if (column === '') continue;
      cells[at].setAttribute('aria-sort', column !== sort.by ? 'none' : sort.ascending ? 'ascending' : 'descending');
    }
  };
  row.replaceChildren(...cells);
  paint();
  return sort;
}
