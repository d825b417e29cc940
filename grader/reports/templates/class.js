"use strict";
// The table of the class page. It reads the students from the JSON next to this script and shows a
// hundred at a time. A student is an index `at` in the list of each field, such as students.name.
// A student's texts are always set as textContent, never parsed as HTML.
(() => {
  const PAGE = 100;
  const AT_ONCE = 32; // rows that fit a window: while somebody types, the others follow in a pause
  const PAUSE = 150; // milliseconds
  const LONG = 24; // characters; a longer cell may be cut and shows its text when pointed at
  const MANY = 40; // flags; more than these get no filter of their own
  const FILTERS = ["q", "state", "section", "exercise", "flag", "mistake"];

  const $ = (id) => document.getElementById(id);
  const { states, exercises, mistakes, students } = JSON.parse($("data").textContent);
  const all = students.id.map((_, at) => at);
  const places = new Map(exercises.map((exercise, place) => [exercise.name, place]));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const view = { q: "", state: "", section: "", exercise: "", flag: "", mistake: "", sort: "", page: 0 };
  let shown = all;
  let pause = 0;

  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const count = (number) => number.toLocaleString("en");
  const plain = (number) => (number === null ? "–" : String(number));
  const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const searched = all.map((at) => folded(["id", "name", "login", "email", "section"].map((each) => students[each][at]).join("\n")));
  const toFix = (at) => students.states[at].filter((state) => state !== passed).length;
  const passed = states.findIndex((state) => state.name === "passed");
  const stateOf = (at) => states[students.state[at]].name;

  function person(at) {
    const link = make(students.page[at] ? "a" : "span");
    if (students.page[at]) link.href = students.page[at];
    link.append(make("bdi", students.id[at]));
    return link;
  }

  function code(at) {
    const link = make("a", "code");
    link.href = students.code[at];
    link.setAttribute("aria-label", `code of ${students.id[at]}`);
    return link;
  }

  // A name is sorted by the surname: what stands before a comma, else the last word.
  function bySurname(name) {
    const [before, ...after] = name.split(",");
    if (after.length) return name;
    const words = before.trim().split(/\s+/);
    return `${words[words.length - 1]}, ${words.slice(0, -1).join(" ")}`;
  }

  // --- columns -------------------------------------------------------------------------------

  const some = (name) => students[name].some((value) => (Array.isArray(value) ? value.length : value));
  const field = (name) => (at) => students[name][at];
  const words = (title, name) => ({ title, text: true, value: field(name), cell: (at) => make("bdi", students[name][at]) });
  const figure = (title, value, kind) => ({ title, value, number: true, shown: (at) => plain(value(at)), kind });
  const columns = [
    { title: "Student", text: true, value: field("id"), cell: person },
    some("code") && { title: "Code", value: (at) => at, cell: code },
    some("name") && { ...words("Name", "name"), value: (at) => students.name[at] && bySurname(students.name[at]) },
    some("section") && words("Section", "section"),
    { ...figure("Points", field("points")), shown: (at) => `${students.points[at]} / ${students.max_points[at]}`, kind: () => "total" },
    some("late_days") && figure("Days late", field("late_days")),
    students.free_left.some((left) => left !== null) && figure("Free days left", field("free_left")),
    some("flags") && { title: $("flag").dataset.title, number: true, value: (at) => students.flags[at].length, cell: (at) => make("span", students.flags[at].join("; "), "flags"), kind: () => "flagged" },
    ...exercises.map((exercise, place) =>
      figure(exercise.title, (at) => students.points_of[at][place], (at) => states[students.states[at][place]].kind)),
    { title: "State", value: (at) => students.state[at] * (exercises.length + 1) + toFix(at), shown: (at) => stateOf(at) + (toFix(at) ? ` (${toFix(at)})` : ""), kind: () => "state" },
    students.attempt.some((attempt) => attempt > 1) && figure("Attempt", field("attempt")),
    some("submitted") && { title: "Submitted", text: true, value: field("submitted"), shown: (at) => students.submitted[at].slice(0, 16).replace("T", " "), kind: () => "small" },
  ].filter(Boolean);

  // Every column is sorted by numbers. Texts are ranked once, when first sorted.
  function keys(column) {
    if (column.keys) return column.keys;
    const values = all.map(column.value);
    if (!column.text) return (column.keys = values);
    const ranks = new Map([...new Set(values)].sort(collator.compare).map((value, rank) => [value, rank]));
    return (column.keys = values.map((value) => (value === "" ? null : ranks.get(value))));
  }

  function sort(chosen) {
    const [, down, at] = /^(-?)(\d+)$/.exec(view.sort) || [];
    if (!columns[at]) return chosen;
    const key = keys(columns[at]);
    const sign = down ? -1 : 1;
    return chosen.sort((a, b) => {
      if (key[a] === null || key[b] === null) return (key[a] === null) - (key[b] === null) || a - b;
      return sign * (key[a] - key[b]) || a - b;
    });
  }

  // --- filtered rows -------------------------------------------------------------------------

  function conditions() {
    const found = [];
    const words = folded(view.q).split(/\s+/).filter(Boolean);
    if (words.length) found.push((at) => words.every((word) => searched[at].includes(word)));
    if (view.state) found.push((at) => stateOf(at) === view.state);
    if (view.section) found.push((at) => students.section[at] === view.section.slice(1));
    if (places.has(view.exercise)) {
      const place = places.get(view.exercise);
      found.push((at) => students.states[at][place] !== passed);
    }
    if (view.flag === "any") found.push((at) => students.flags[at].length);
    if (view.flag === "none") found.push((at) => !students.flags[at].length);
    if (view.flag.startsWith("=")) found.push((at) => students.kinds[at].includes(view.flag.slice(1)));
    if (mistakes[view.mistake]) {
      const who = new Set(mistakes[view.mistake]);
      found.push((at) => who.has(at));
    }
    return found;
  }

  function choose(rows = PAGE) {
    const found = conditions();
    shown = sort(all.filter((at) => found.every((holds) => holds(at))));
    render(rows);
  }

  // --- the table -----------------------------------------------------------------------------

  function render(most = PAGE) {
    clearTimeout(pause);
    view.page = Math.max(0, Math.min(view.page, Math.ceil(shown.length / PAGE) - 1));
    const first = view.page * PAGE;
    const rows = shown.slice(first, first + PAGE);
    $("rows").replaceChildren(...rows.slice(0, most).map(rowOf));
    if (rows.length > most) pause = setTimeout(() => $("rows").append(...rows.slice(most).map(rowOf)), PAUSE);
    const last = first + rows.length;
    const range = rows.length ? `Showing ${count(first + 1)}–${count(last)} of ${count(shown.length)}` : "No students match";
    const rest = shown.length < all.length ? ` (${count(all.length)} in the class)` : "";
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

  // A row is made once and kept: nothing in it changes, and typing shows most rows again.
  const made = new Map();
  function rowOf(at) {
    if (!made.has(at)) made.set(at, makeRow(at));
    return made.get(at);
  }

  function makeRow(at) {
    const tr = make("tr");
    columns.forEach((column, place) => {
      const cell = make(place ? "td" : "th", column.shown && column.shown(at));
      if (!place) cell.scope = "row";
      if (column.cell) cell.append(column.cell(at));
      const names = [column.number && column.shown && "number", column.kind && column.kind(at)];
      cell.className = names.filter(Boolean).join(" ");
      if (!column.number && cell.textContent.length > LONG) cell.title = cell.textContent;
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
    const found = tally(all.map(stateOf));
    const present = states.map((state) => state.name).filter((name) => found.has(name));
    options("state", present.map((name) => [name, `${name} (${count(found.get(name))})`]));
    const sections = [...tally(students.section)].sort(([a], [b]) => collator.compare(a, b));
    options("section", some("section") ? sections.map(([name, n]) => [`=${name}`, `${name || "no section"} (${count(n)})`]) : []);
    options("exercise", exercises.map(({ name, title }) => [name, `${title} is not passed`]));
    const reasons = tally(students.kinds.flatMap((kinds) => [...new Set(kinds)]));
    const each = reasons.size <= MANY ? [...reasons].map(([why, n]) => [`=${why}`, `${why} (${count(n)})`]) : [];
    options("flag", reasons.size ? [["any", "flagged"], ["none", "not flagged"], ...each] : []);
    options("mistake", mistakes.map((_, at) => [at, $(`mistake-${at}`).dataset.title]));
  }

  function show() {
    FILTERS.forEach((key) => {
      $(key).value = view[key];
      if ($(key).value !== view[key]) $(key).value = view[key] = ""; // an option that does not exist
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

  function showOnly(wanted) {
    FILTERS.forEach((key) => (view[key] = ""));
    Object.assign(view, wanted, { page: 0 });
    show();
    $("students").scrollIntoView();
    $("q").focus({ preventScroll: true });
  }

  // --- the students who made a mistake -------------------------------------------------------

  function unfold(details) {
    const list = details.querySelector(".who");
    if (!details.open || list.childElementCount) return;
    const who = mistakes[details.dataset.mistake];
    who.slice(0, PAGE).forEach((at) => {
      const item = make("li");
      item.append(person(at));
      if (students.name[at]) item.append(" ", make("bdi", students.name[at]));
      list.append(item);
    });
    if (who.length > PAGE) list.append(make("li", `and ${count(who.length - PAGE)} more`, "soft"));
  }

  function orderMistakes(by) {
    const key = (item) => (by === "students" ? -item.dataset.students : Number(item.dataset.at));
    const items = [...document.querySelectorAll(".mistakes > li")];
    items.sort((a, b) => key(a) - key(b) || a.dataset.at - b.dataset.at);
    const lists = [...document.querySelectorAll(".mistakes")];
    const first = lists[0].childElementCount;
    lists[0].append(...items.slice(0, first));
    if (lists[1]) lists[1].append(...items.slice(first));
    $("order").querySelectorAll("button").forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.order === by)));
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
      choose(key === "q" ? AT_ONCE : PAGE);
    }));
  $("clear").addEventListener("click", () => showOnly({}));
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  document.querySelectorAll("details[data-mistake]").forEach((details) =>
    details.addEventListener("toggle", () => unfold(details)));
  document.querySelectorAll("button[data-only]").forEach((button) =>
    button.addEventListener("click", () => showOnly(Object.fromEntries(new URLSearchParams(button.dataset.only)))));
  document.querySelectorAll("button[data-order]").forEach((button) =>
    button.addEventListener("click", () => orderMistakes(button.dataset.order)));
  if ($("order")) $("order").hidden = mistakes.length < 2;
  document.addEventListener("keydown", onKey);
  document.querySelectorAll(`a[href^="${MARK}"]`).forEach((link) =>
    link.addEventListener("click", (event) => {
      event.preventDefault();
      showOnly(Object.fromEntries(new URLSearchParams(link.getAttribute("href").slice(MARK.length))));
    }));
  addEventListener("hashchange", () => recall() && show());
  const recalled = recall();
  $("table-controls").hidden = false;
  show();
  if (recalled) $("students").scrollIntoView();
})();
