"use strict";
// The class page's table: rows come from the JSON beside this script, a hundred at a time.
// Whatever a student wrote is set as textContent, and never parsed as HTML.
(() => {
  const PAGE = 100;
  const MANY = 12; // reasons of flags that are worth an entry each
  const STATES = ["passed", "to mend", "not started", "not graded", "error"];
  const FILTERS = ["q", "state", "section", "exercise", "flag", "mistake"];
  const [ID, NAME, SECTION, POINTS, MAX, OF, STATES_OF, STATE, ATTEMPT, SUBMITTED, LATE, FLAGS, MEND, LINK] =
    Array(14).keys();

  const $ = (id) => document.getElementById(id);
  const { exercises, mistakes, students } = JSON.parse($("data").textContent);
  const titles = new Map(exercises.map((exercise) => [exercise.name, exercise.title]));
  const places = new Map(exercises.map((exercise, place) => [exercise.name, place]));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const view = { q: "", state: "", section: "", exercise: "", flag: "", mistake: "", sort: "", page: 0 };
  let shown = students.map((_, index) => index);

  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const count = (number) => number.toLocaleString("en");
  const plain = (number) => (number === null ? "–" : String(number));
  const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const searched = students.map((row) => folded([row[ID], row[NAME], row[SECTION]].join("\n")));

  function person(row) {
    const link = make("a");
    link.href = row[LINK];
    link.append(make("bdi", row[ID]));
    return link;
  }

  // --- columns -------------------------------------------------------------------------------

  const some = (at) => students.some((row) => (Array.isArray(row[at]) ? row[at].length : row[at]));
  const words = (title, at) => ({ title, text: true, of: (row) => row[at], cell: (row) => make("bdi", row[at]) });
  const figure = (title, of, kind) => ({ title, of, number: true, shown: (row) => plain(of(row)), kind });
  const marks = ["full", "part", "none", "none", "broken"];
  const columns = [
    { title: "Student", text: true, of: (row) => row[ID], cell: person },
    some(NAME) && words("Name", NAME),
    some(SECTION) && words("Section", SECTION),
    { ...figure("Points", (row) => row[POINTS]), shown: (row) => `${row[POINTS]} / ${row[MAX]}`, kind: () => "total" },
    ...exercises.map((exercise, place) =>
      figure(exercise.title, (row) => row[OF][place], (row) => marks[row[STATES_OF][place]])),
    { title: "State", of: (row) => row[STATE], shown: (row) => STATES[row[STATE]] },
    { title: "To mend first", of: (row) => places.get(row[MEND]) ?? exercises.length, shown: (row) => titles.get(row[MEND]) ?? "" },
    some(FLAGS) && { title: "Flags", number: true, of: (row) => row[FLAGS].length, cell: (row) => make("span", row[FLAGS].join("; "), "flags") },
    students.some((row) => row[ATTEMPT] > 1) && figure("Attempt", (row) => row[ATTEMPT]),
    some(SUBMITTED) && { title: "Handed in", text: true, of: (row) => row[SUBMITTED], shown: (row) => row[SUBMITTED].slice(0, 16).replace("T", " ") },
    some(LATE) && figure("Days late", (row) => row[LATE]),
  ].filter(Boolean);

  // Every column is sorted by whole numbers: texts are ranked once, when first asked for.
  function keys(column) {
    if (column.keys) return column.keys;
    const values = students.map(column.of);
    if (!column.text) return (column.keys = values);
    const ranks = new Map([...new Set(values)].sort(collator.compare).map((value, rank) => [value, rank]));
    return (column.keys = values.map((value) => (value === "" ? null : ranks.get(value))));
  }

  function order(chosen) {
    const [, down, at] = /^(-?)(\d+)$/.exec(view.sort) || [];
    if (!columns[at]) return chosen;
    const of = keys(columns[at]);
    const sign = down ? -1 : 1;
    return chosen.sort((a, b) => {
      if (of[a] === null || of[b] === null) return (of[a] === null) - (of[b] === null) || a - b;
      return sign * (of[a] - of[b]) || a - b;
    });
  }

  // --- which rows ----------------------------------------------------------------------------

  function tests() {
    const found = [];
    const words = folded(view.q).split(/\s+/).filter(Boolean);
    if (words.length) found.push((row, at) => words.every((word) => searched[at].includes(word)));
    if (view.state) found.push((row) => STATES[row[STATE]] === view.state);
    if (view.section) found.push((row) => row[SECTION] === view.section.slice(1));
    if (places.has(view.exercise)) {
      const place = places.get(view.exercise);
      found.push((row) => row[STATES_OF][place] !== "0");
    }
    if (view.flag === "any") found.push((row) => row[FLAGS].length);
    if (view.flag === "none") found.push((row) => !row[FLAGS].length);
    if (view.flag.startsWith("=")) found.push((row) => row[FLAGS].includes(view.flag.slice(1)));
    if (mistakes[view.mistake]) {
      const who = new Set(mistakes[view.mistake]);
      found.push((row, at) => who.has(at));
    }
    return found;
  }

  function choose() {
    const asked = tests();
    const chosen = [];
    students.forEach((row, at) => {
      if (asked.every((holds) => holds(row, at))) chosen.push(at);
    });
    shown = order(chosen);
    render();
  }

  // --- the table -----------------------------------------------------------------------------

  function render() {
    view.page = Math.max(0, Math.min(view.page, Math.ceil(shown.length / PAGE) - 1));
    const first = view.page * PAGE;
    const rows = shown.slice(first, first + PAGE);
    $("rows").replaceChildren(...rows.map((at) => rowOf(students[at])));
    const last = first + rows.length;
    const range = rows.length ? `Showing ${count(first + 1)}–${count(last)} of ${count(shown.length)}` : "Nobody fits";
    const rest = shown.length < students.length ? ` (${count(students.length)} in the class)` : "";
    $("showing").textContent = range + rest;
    $("previous").disabled = first === 0;
    $("next").disabled = last >= shown.length;
    $("clear").disabled = !FILTERS.some((key) => view[key]);
    document.querySelectorAll("#head th").forEach((th, at) => {
      const sorted = view.sort === String(at) ? "ascending" : view.sort === `-${at}` ? "descending" : "none";
      th.setAttribute("aria-sort", sorted);
    });
    remember();
  }

  function rowOf(row) {
    const tr = make("tr");
    columns.forEach((column, at) => {
      const cell = make(at ? "td" : "th", column.shown && column.shown(row));
      if (!at) cell.scope = "row";
      if (column.cell) cell.append(column.cell(row));
      if (column.number && column.shown) cell.classList.add("number");
      if (column.kind) cell.classList.add(column.kind(row));
      tr.append(cell);
    });
    return tr;
  }

  function head() {
    columns.forEach((column, at) => {
      const th = make("th");
      th.scope = "col";
      if (column.number && column.shown) th.className = "number";
      const button = make("button", column.title);
      button.type = "button";
      button.addEventListener("click", () => {
        view.sort = view.sort === String(at) ? `-${at}` : String(at);
        view.page = 0;
        choose();
      });
      th.append(button);
      $("head").append(th);
    });
  }

  // --- filters -------------------------------------------------------------------------------

  const tally = (values) => values.reduce((found, value) => found.set(value, (found.get(value) || 0) + 1), new Map());

  function options(id, found) {
    found.forEach(([value, text]) => {
      const option = make("option", text);
      option.value = value;
      $(id).append(option);
    });
    $(id).parentElement.hidden = !found.length;
  }

  function fillFilters() {
    const states = tally(students.map((row) => STATES[row[STATE]]));
    options("state", STATES.filter((word) => states.has(word)).map((word) => [word, `${word} (${count(states.get(word))})`]));
    const sections = [...tally(students.map((row) => row[SECTION]))].sort(([a], [b]) => collator.compare(a, b));
    options("section", some(SECTION) ? sections.map(([name, n]) => [`=${name}`, `${name || "no section"} (${count(n)})`]) : []);
    options("exercise", exercises.map(({ name, title }) => [name, `${title} is not passed`]));
    const reasons = tally(students.flatMap((row) => row[FLAGS]));
    const each = reasons.size <= MANY ? [...reasons].map(([why, n]) => [`=${why}`, `${why} (${count(n)})`]) : [];
    options("flag", reasons.size ? [["any", "flagged"], ["none", "not flagged"], ...each] : []);
    options("mistake", mistakes.map((who, at) => [at, $(`mistake-${at}`).dataset.title]));
  }

  function show() {
    FILTERS.forEach((key) => {
      $(key).value = view[key];
      if ($(key).value !== view[key]) $(key).value = view[key] = ""; // an option that is not there
    });
    choose();
  }

  const MARK = "#table&";
  function remember() {
    const kept = new URLSearchParams(Object.entries(view).filter(([, value]) => value));
    const hash = String(kept) ? MARK + kept : location.hash.startsWith(MARK) ? "#students" : location.hash;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }

  function recall() {
    if (!location.hash.startsWith(MARK)) return false;
    const kept = new URLSearchParams(location.hash.slice(MARK.length));
    [...FILTERS, "sort"].forEach((key) => (view[key] = kept.get(key) || ""));
    view.page = Number.parseInt(kept.get("page"), 10) || 0;
    return true;
  }

  function only(wanted) {
    FILTERS.forEach((key) => (view[key] = ""));
    Object.assign(view, wanted, { page: 0 });
    show();
    $("students").scrollIntoView();
    $("q").focus({ preventScroll: true });
  }

  // --- names that unfold ---------------------------------------------------------------------

  function unfold(details) {
    const at = details.dataset.mistake;
    const place = details.querySelector(".who");
    if (!details.open || place.childElementCount) return;
    const who = mistakes[at];
    who.slice(0, PAGE).forEach((student) => {
      const item = make("li");
      item.append(person(students[student]));
      if (students[student][NAME]) item.append(" ", make("bdi", students[student][NAME]));
      place.append(item);
    });
    if (who.length > PAGE) place.append(make("li", `and ${count(who.length - PAGE)} more`, "soft"));
  }

  // --- the keyboard --------------------------------------------------------------------------

  function turn(by) {
    view.page += by;
    render();
  }

  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...$("rows").querySelectorAll("th a")];
    const at = links.indexOf(document.activeElement);
    if (!step || (at < 0 && (document.activeElement !== $("q") || step < 0))) return;
    event.preventDefault();
    if (links[at + step]) return links[at + step].focus();
    if (at === 0 && step < 0 && view.page === 0) return $("q").focus();
    const page = view.page;
    turn(step);
    const turned = $("rows").querySelectorAll("th a");
    if (view.page !== page) turned[step > 0 ? 0 : turned.length - 1].focus();
    else if (turned.length) turned[turned.length - 1].focus();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      $("q").focus();
      $("q").select();
    } else if (event.key === "Escape" && document.activeElement === $("q")) {
      $("q").value = "";
      $("q").dispatchEvent(new Event("input"));
    } else move(event);
  }

  // --- start ---------------------------------------------------------------------------------

  head();
  fillFilters();
  FILTERS.forEach((key) =>
    $(key).addEventListener("input", () => {
      view[key] = $(key).value;
      view.page = 0;
      choose();
    }));
  $("clear").addEventListener("click", () => only({}));
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  document.querySelectorAll("details[data-mistake]").forEach((details) =>
    details.addEventListener("toggle", () => unfold(details)));
  document.querySelectorAll("button[data-only]").forEach((button) =>
    button.addEventListener("click", () => only(Object.fromEntries(new URLSearchParams(button.dataset.only)))));
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => recall() && show());
  const recalled = recall();
  $("table-controls").hidden = false;
  show();
  if (recalled) $("students").scrollIntoView();
})();
